/** What is used of a command of ioredis: public there since version 4. */
export interface RedisCommand {
  readonly name: string;
  readonly args: readonly unknown[];
  /** What the caller waits for. */
  readonly promise: Promise<unknown>;
  /** Ends it for its caller. A reply that comes later finds it ended, and keeps its place in the queue. */
  reject(error: Error): void;
}

const BLOCKING = new Set(['blpop', 'brpop', 'brpoplpush', 'blmove', 'blmpop', 'bzpopmin', 'bzpopmax', 'bzmpop']);
const BLOCKING_WITH_OPTION = new Set(['xread', 'xreadgroup']);
/** They wait for replicas, or turn the connection into a stream of messages. */
const WAITING = new Set(['wait', 'waitaof', 'subscribe', 'psubscribe', 'ssubscribe', 'monitor', 'psync', 'sync']);
/** How ioredis makes and ends a connection: a breaker that refused them would keep it from ever coming back. */
const OF_CONNECTION = new Set(
  'auth hello select client info cluster readonly readwrite asking quit reset unsubscribe punsubscribe sunsubscribe'.split(
    ' ',
  ),
);

/** It waits for as long as it takes. */
export function blocks({ name, args }: RedisCommand): boolean {
  const command = name.toLowerCase();
  if (BLOCKING.has(command) || WAITING.has(command)) return true;
  return BLOCKING_WITH_OPTION.has(command) && args.some((arg) => String(arg).toLowerCase() === 'block');
}

export const isOfConnection = ({ name }: RedisCommand): boolean => OF_CONNECTION.has(name.toLowerCase());

/** Replies by which a server says that it cannot serve now. https://redis.io/docs/latest/develop/reference/protocol-spec/ */
const CANNOT_SERVE = /^(LOADING|CLUSTERDOWN|MASTERDOWN|TRYAGAIN|NOREPLICAS)\b/;

/** An error reply is an answer: `WRONGTYPE` is the application's mistake, not a failure of the server. */
export function isRedisFailure(error: unknown): boolean {
  if (!(error instanceof Error)) return true;
  return error.name !== 'ReplyError' || CANNOT_SERVE.test(error.message);
}
