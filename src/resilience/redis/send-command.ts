import type { EventEmitter } from 'node:events';
import { listenShared } from '../../core/shared-listener.js';
import { putOn } from '../../core/stand-in.js';
import type { RedisClient } from './redis-upstream.js';
import type { RedisCommand } from './redis-command.js';

/** Runs before a client's `sendCommand`. `pipeline`: the object that the commands of one pipeline share. */
export type SendCommand = (command: RedisCommand, pipeline: object | null, send: () => unknown) => unknown;

/** The part of a `Cluster` that is used; a `Redis` has no `nodes`. */
interface Cluster extends EventEmitter {
  nodes?(role: 'all'): RedisClient[];
}

/** Puts an own property on `client`, and on the connections of a cluster. Returns the function that removes them. */
export function placeSendCommand(
  client: RedisClient,
  stands: { readonly client: SendCommand; readonly node: SendCommand },
): () => void {
  const giveBack = placeOn(client, stands.client);
  const cluster = client as unknown as Cluster;
  if (typeof cluster.nodes !== 'function') return giveBack;
  const nodes = new Map<RedisClient, () => void>();
  const came = (node: RedisClient): void => void nodes.set(node, placeOn(node, stands.node));
  const went = (node: RedisClient): void => void nodes.delete(node);
  for (const node of cluster.nodes('all')) came(node);
  const stops = [listenShared(cluster, '+node', came), listenShared(cluster, '-node', went)];
  return () => {
    for (const stop of stops) stop();
    for (const giveNodeBack of nodes.values()) giveNodeBack();
    giveBack();
  };
}

type Original = (command: RedisCommand, pipeline?: object, ...more: unknown[]) => unknown;

function placeOn(client: RedisClient, stands: SendCommand): () => void {
  const original = Reflect.get(client, 'sendCommand') as Original;
  let active = true;
  const placed: Original = (command, pipeline, ...more) => {
    const send = (): unknown => original.call(client, command, pipeline, ...more);
    return active ? stands(command, pipeline ?? null, send) : send();
  };
  const takeAway = putOn(client, 'sendCommand', placed)!;
  return () => {
    // Another wrapper may have been put over ours meanwhile: ours then only passes on.
    active = false;
    takeAway();
  };
}
