import { isOwnCall } from '../../core/own-calls.js';
import { requestContext } from '../../request/request-state.js';
import type { Channels } from '../channels.js';
import type { Call } from '../request-time.js';
import type { Upstream } from '../upstream.js';

/** A command or a transaction on the tracing channels of ioredis and node-redis. */
interface TracedCommand {
  readonly command?: string;
  readonly args?: readonly unknown[];
  readonly serverAddress?: string;
  readonly serverPort?: number;
  readonly error?: unknown;
  /** node-redis publishes the commands of a pipeline as well. */
  readonly batchMode?: 'MULTI' | 'PIPELINE';
}

/** ioredis publishes them from 5.11, node-redis from 5.12. */
const CHANNELS = ['ioredis:command', 'node-redis:command', 'node-redis:batch'];

/** Subscribes to ioredis and node-redis: https://nodejs.org/api/diagnostics_channel.html#tracingchannel-channels. */
export function subscribeRedis(channels: Channels, upstream: Upstream): void {
  // The client makes a message object for each command, so it can carry the call: a weak map would cost more than the rest.
  const CALL = Symbol('perf:call');
  type Known = TracedCommand & { [CALL]?: Call | null };
  // The last server: most commands go to one, and need no new text.
  let server = { address: '', port: 0, host: '' };
  const findHost = (address = 'unknown', port = 0): string => {
    if (server.address !== address || server.port !== port)
      server = { address, port, host: port === 0 ? address : `${address}:${port}` };
    return server.host;
  };
  const end = (traced: Known): void => traced[CALL]?.end(traced.error !== undefined);
  const begin = (traced: Known): void => {
    const { batchMode, command = batchMode ?? 'command', args = [], serverAddress, serverPort } = traced;
    const method = command.toUpperCase();
    if (isOwnCall() || isIntroduction(method, args)) return;
    if (requestContext.getStore() === undefined && waitsForWrites(method, args)) return;
    const isQueue = isBullMq(method, args);
    const host = findHost(serverAddress, serverPort);
    const client = isQueue ? 'bullmq' : 'redis';
    const target = upstream.targets.find('redis', client, host, method);
    traced[CALL] = upstream.begin(target, method, isQueue);
  };
  for (const name of CHANNELS) {
    channels.on(`tracing:${name}:start`, (traced: Known) => {
      if (name !== 'node-redis:batch' || traced.batchMode === 'MULTI') begin(traced);
    });
    // A command that throws at once has no asynchronous end.
    for (const event of ['error', 'asyncEnd']) channels.on(`tracing:${name}:${event}`, end);
  }
}

/** Clients send `CLIENT SETINFO` on a new connection; Redis before 7.2 answers with an error that the client hides. */
const isIntroduction = (method: string, args: readonly unknown[]): boolean =>
  method === 'CLIENT' && String(args[0]).toUpperCase() === 'SETINFO';

/** BullMQ's keys begin with its default prefix; a script's keys follow its hash and their number. */
const isBullMq = (method: string, args: readonly unknown[]): boolean =>
  String(method.startsWith('EVAL') ? args[2] : args[0]).startsWith('bull:');

const BLOCKING = /^B(L(POP|MOVE|MPOP)|RPOP(LPUSH)?|Z(POP(MIN|MAX)|MPOP))$/;

/** A blocking read (`BLPOP`, `XREAD … BLOCK`) of an idle worker is not latency: https://redis.io/commands/?group=list */
function waitsForWrites(method: string, args: readonly unknown[]): boolean {
  return (
    BLOCKING.test(method) || (/^XREAD(GROUP)?$/.test(method) && args.some((word) => /^block$/i.test(String(word))))
  );
}
