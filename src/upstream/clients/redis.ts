import { isOwnCall } from '../../core/own-calls.js';
import { requestContext } from '../../request/request-state.js';
import type { Channels } from '../channels.js';
import type { Call, Upstream } from '../upstream.js';

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

/** ioredis publishes them from 5.11, node-redis from 5.10. */
const CHANNELS = ['ioredis:command', 'node-redis:command', 'node-redis:batch'];

/** Subscribes to ioredis and node-redis: https://nodejs.org/api/diagnostics_channel.html#tracingchannel-channels. */
export function subscribeRedis(channels: Channels, upstream: Upstream): void {
  const calls = new WeakMap<TracedCommand, Call>();
  const end = (traced: TracedCommand): void => calls.get(traced)?.end(traced.error !== undefined);
  const begin = (traced: TracedCommand): void => {
    const { batchMode, command = batchMode, serverAddress = 'unknown', serverPort } = traced;
    if (isOwnCall() || isIntroduction(traced)) return;
    if (requestContext.getStore() === undefined && waitsForWrites(traced)) return;
    const host = serverPort === undefined ? serverAddress : `${serverAddress}:${serverPort}`;
    const method = command?.toUpperCase() ?? 'command';
    const isQueue = isBullMq(traced);
    const client = isQueue ? 'bullmq' : 'redis';
    const target = upstream.targets.find({ kind: 'redis', client, host, method, path: '' });
    const call = upstream.begin(target, method, isQueue);
    if (call !== null) calls.set(traced, call);
  };
  for (const name of CHANNELS) {
    channels.on(`tracing:${name}:start`, (traced: TracedCommand) => {
      if (name !== 'node-redis:batch' || traced.batchMode === 'MULTI') begin(traced);
    });
    channels.on(`tracing:${name}:asyncEnd`, end);
    // A command that throws at once has no asynchronous end.
    channels.on(`tracing:${name}:end`, (traced: TracedCommand) => {
      if (traced.error !== undefined) end(traced);
    });
  }
}

/** A client introduces itself on a new connection; Redis before 7.2 answers with an error that no code sees. */
const isIntroduction = ({ command, args }: TracedCommand): boolean =>
  command?.toLowerCase() === 'client' && String(args?.[0]).toUpperCase() === 'SETINFO';

/** BullMQ's keys begin with its default prefix; a script's keys follow its hash and their number. */
const isBullMq = ({ command = '', args = [] }: TracedCommand): boolean =>
  String(/^eval/i.test(command) ? args[2] : args[0]).startsWith('bull:');

const BLOCKING = /^B(L(POP|MOVE|MPOP)|RPOP(LPUSH)?|Z(POP(MIN|MAX)|MPOP))$/i;

/** A blocking read (`BLPOP`, `XREAD … BLOCK`) of an idle worker is not latency: https://redis.io/commands/?group=list */
function waitsForWrites({ command = '', args = [] }: TracedCommand): boolean {
  if (!/^XREAD(GROUP)?$/i.test(command)) return BLOCKING.test(command);
  const words = args.map((word) => String(word).toUpperCase());
  return words.slice(0, words.indexOf('STREAMS')).includes('BLOCK');
}
