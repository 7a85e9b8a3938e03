import { executionAsyncResource } from 'node:async_hooks';
import { isOwnCall } from '../../core/own-calls.js';
import type { UpstreamKind } from '../../core/record.js';
import type { Channels } from '../channels.js';
import type { Call, Caller, Upstream } from '../upstream.js';
import type { MadeCall } from '../target.js';
import { BullMqQueues } from './bullmq-queues.js';

/** What the clients tell of a call on their tracing channels. */
interface Traced {
  readonly command?: string;
  readonly args?: readonly unknown[];
  readonly database?: string | number;
  readonly serverAddress?: string;
  readonly serverPort?: number;
  readonly error?: unknown;
  /** Of node-redis, whose pipelines publish their commands, too. */
  readonly batchMode?: 'MULTI' | 'PIPELINE';
  /** The statement of SQL, with its values in it. */
  readonly query?: string;
}

interface TracedClient {
  /** As `diagnostics_channel.tracingChannel()` names it. */
  readonly channel: string;
  readonly kind: UpstreamKind;
  /** The first word of a target. */
  readonly client: string;
}

/** Clients that publish tracing channels: ioredis from 5.11, node-redis from 5.10, mysql2 from 3.20. */
const CLIENTS: readonly TracedClient[] = [
  { channel: 'ioredis:command', kind: 'redis', client: 'redis' },
  { channel: 'node-redis:command', kind: 'redis', client: 'redis' },
  { channel: 'node-redis:batch', kind: 'redis', client: 'redis' },
  { channel: 'mysql2:query', kind: 'sql', client: 'mysql' },
  { channel: 'mysql2:execute', kind: 'sql', client: 'mysql' },
];

/** https://nodejs.org/api/diagnostics_channel.html#tracingchannel-channels */
export function hearTraced(channels: Channels, upstream: Upstream): void {
  const waited = hearMySqlPool(channels, upstream);
  const queued = hearConnections(channels);
  const queues = new BullMqQueues();
  const calls = new WeakMap<Traced, Call>();
  const end = (traced: Traced): void => {
    const call = calls.get(traced);
    if (call === undefined) return;
    calls.delete(traced);
    upstream.end(call, traced.error !== undefined);
  };
  for (const { channel, kind, client } of CLIENTS) {
    channels.on(`tracing:${channel}:start`, (traced: Traced) => {
      if (isOwnCall() || isIntroduction(traced) || (channel === 'node-redis:batch' && traced.batchMode !== 'MULTI'))
        return;
      const told = kind !== 'sql' || waited.caller === undefined ? upstream.caller() : waited.caller;
      if (told === 'foreign') return;
      // Sent by the code of who came first.
      const isAnybodys = channel === 'ioredis:command' && queued(traced) && !upstream.isAlone;
      const caller = isAnybodys ? null : told;
      // How a worker rests: it says nothing of how fast Redis is. A request that waits so is kept by it.
      if (kind === 'redis' && caller === null && waitsForWrites(traced)) return;
      if (kind === 'sql' && upstream.driven.take(client, traced.query ?? '', caller)) return;
      const made = madeCall(kind, client, traced);
      const bullmq = kind === 'redis' && queues.isOf(traced);
      const call = bullmq ? upstream.begin({ ...made, client: 'bullmq' }, caller, true) : upstream.begin(made, caller);
      if (call !== null) calls.set(traced, call);
    });
    channels.on(`tracing:${channel}:asyncEnd`, end);
    // One that has thrown at once has no asynchronous end.
    channels.on(`tracing:${channel}:end`, (traced: Traced) => {
      if (traced.error !== undefined) end(traced);
    });
  }
}

/**
 * Whether a command of ioredis may have waited: for its connection, or to be sent with others. `enableAutoPipelining` sends them
 * in an immediate, or when those before are answered: once an immediate has sent something, it may be any of them.
 */
function hearConnections(channels: Channels): (traced: Traced) => boolean {
  const opening = new Map<string, number>();
  const pipelined = new Set<string>();
  const count = (traced: Traced, by: 1 | -1): void => {
    const left = (opening.get(serverOf(traced)) ?? 0) + by;
    if (left > 0) opening.set(serverOf(traced), left);
    else opening.delete(serverOf(traced));
  };
  channels.on('tracing:ioredis:connect:start', (traced: Traced) => count(traced, 1));
  channels.on('tracing:ioredis:connect:asyncEnd', (traced: Traced) => count(traced, -1));
  return (traced) => {
    const server = serverOf(traced);
    if (executionAsyncResource().constructor?.name === 'Immediate') pipelined.add(server);
    return pipelined.has(server) || opening.has(server);
  };
}

/** Whose code runs, where a query has waited for a connection of mysql2's pool: it begins in the code of who gave that back. */
interface Waited {
  caller: Caller | undefined;
}

function hearMySqlPool(channels: Channels, upstream: Upstream): Waited {
  const waited: Waited = { caller: undefined };
  const callers = new WeakMap<Traced, Caller>();
  channels.on('tracing:mysql2:pool:connect:start', (traced: Traced) => callers.set(traced, upstream.caller()));
  channels.on('tracing:mysql2:pool:connect:asyncStart', (traced: Traced) => (waited.caller = callers.get(traced)));
  channels.on('tracing:mysql2:pool:connect:asyncEnd', () => (waited.caller = undefined));
  return waited;
}

/** How a Redis client introduces itself on a new connection; before Redis 7.2 that is answered with an error, which nobody sees. */
const isIntroduction = ({ command, args }: Traced): boolean =>
  command?.toLowerCase() === 'client' && String(args?.[0]).toUpperCase() === 'SETINFO';

const BLOCKING = /^B(L(POP|MOVE|MPOP)|RPOP(LPUSH)?|Z(POP(MIN|MAX)|MPOP))$/i;

/** Whether Redis answers only when somebody else has written, or its time is over: https://redis.io/commands/?group=list */
function waitsForWrites({ command = '', args = [] }: Traced): boolean {
  if (!/^XREAD(GROUP)?$/i.test(command)) return BLOCKING.test(command);
  const words = args.map((word) => String(word).toUpperCase());
  return words.slice(0, words.indexOf('STREAMS')).includes('BLOCK');
}

function serverOf({ serverAddress = 'unknown', serverPort }: Traced): string {
  return serverPort === undefined ? serverAddress : `${serverAddress}:${serverPort}`;
}

function madeCall(kind: UpstreamKind, client: string, traced: Traced): MadeCall {
  const { database, command = traced.batchMode, query } = traced;
  const named = kind === 'sql' && typeof database === 'string' && database !== '';
  const host = named ? `${serverOf(traced)}/${database}` : serverOf(traced);
  const call = { kind, client, host, method: command?.toUpperCase() ?? 'query', path: '' };
  return query === undefined ? call : { ...call, what: shapeOf(query) };
}

/** Longer ones are cut: reading one takes some microseconds. */
const MAX_LENGTH = 4_096;

/** A name in backticks; a text, which a cut may leave open; a number that is no part of a name. */
const NAME_OR_VALUE =
  /`[^`]*`|'(?:[^'\\]|\\.|'')*'?|"(?:[^"\\]|\\.|"")*"?|\b(?:0x[\da-f]+|\d[\d.]*(?:e[+-]?\d+)?)\b/gis;

/** A statement of MySQL without its values: those of one shape are alike. */
export const shapeOf = (statement: string): string =>
  statement.slice(0, MAX_LENGTH).replace(NAME_OR_VALUE, (part) => (part.startsWith('`') ? part : '?'));
