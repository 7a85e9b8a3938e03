/** A command of ioredis: public there since version 4. */
export interface RedisCommand {
  readonly name: string;
  readonly args: readonly unknown[];
  /** The caller's promise. */
  readonly promise: Promise<unknown>;
  /** Rejects the caller's promise. A later reply keeps its place in the queue. */
  reject(error: Error): void;
}

const BLOCKING = new Set(['blpop', 'brpop', 'brpoplpush', 'blmove', 'blmpop', 'bzpopmin', 'bzpopmax', 'bzmpop']);
const BLOCKING_WITH_OPTION = new Set(['xread', 'xreadgroup']);
/** These wait for replicas, or turn the connection into a stream of messages. */
const WAITING = new Set(['wait', 'waitaof', 'subscribe', 'psubscribe', 'ssubscribe', 'monitor', 'psync', 'sync']);
/** ioredis makes and ends a connection with these: a breaker that refused them would keep it from ever coming back. */
const OF_CONNECTION = new Set(
  'auth hello select client info cluster readonly readwrite asking quit reset unsubscribe punsubscribe sunsubscribe'.split(
    ' ',
  ),
);

/** A command that has no deadline. */
export function blocks({ name, args }: RedisCommand): boolean {
  const command = name.toLowerCase();
  if (BLOCKING.has(command) || WAITING.has(command)) return true;
  return BLOCKING_WITH_OPTION.has(command) && args.some((arg) => String(arg).toLowerCase() === 'block');
}

export const isOfConnection = ({ name }: RedisCommand): boolean => OF_CONNECTION.has(name.toLowerCase());

/** Error replies of a server that cannot serve now. https://redis.io/docs/latest/develop/reference/protocol-spec/ */
const CANNOT_SERVE = /^(LOADING|CLUSTERDOWN|MASTERDOWN|TRYAGAIN|NOREPLICAS)\b/;

/** An error reply is an answer: `WRONGTYPE` is the application's mistake, not a failure of the server. */
export function isRedisFailure(error: unknown): boolean {
  if (!(error instanceof Error)) return true;
  return error.name !== 'ReplyError' || CANNOT_SERVE.test(error.message);
}
