/** A key of a queue: `<prefix>:<queue>:<part>`. */
const QUEUE_KEY =
  /^([^:]+:[^:]+):(id|meta|wait|active|paused|delayed|prioritized|completed|failed|events|marker|stalled|stalled-check|limiter|repeat|pc|waiting-children)?$/;
const QUEUE = /^[^:]+:[^:]+(?=:)/;
/** Queues that are remembered. */
const MAX_QUEUES = 1_000;

interface Command {
  readonly command?: string;
  readonly args?: readonly unknown[];
}

/**
 * Tells BullMQ's commands by their keys. A queue is known by its scripts, which take several of its keys, by the options that
 * it writes first, and by a worker's wait; an application's own `user:42:meta` is none.
 */
export class BullMqQueues {
  private readonly known = new Set<string>();

  isOf({ command = '', args = [] }: Command): boolean {
    const name = command.toUpperCase();
    const keys = name === 'EVALSHA' || name === 'EVAL' ? args.slice(2, 2 + Number(args[1])) : args.slice(0, 1);
    const [first] = keys;
    if (typeof first !== 'string') return false;
    if (this.known.has(QUEUE.exec(first)?.[0] ?? '')) return true;
    const queue = QUEUE_KEY.exec(first)?.[1];
    if (queue === undefined || !isBegun(name, queue, keys, args)) return false;
    if (this.known.size < MAX_QUEUES) this.known.add(queue);
    return true;
  }
}

function isBegun(name: string, queue: string, keys: readonly unknown[], args: readonly unknown[]): boolean {
  if (name === 'BZPOPMIN') return keys[0] === `${queue}:marker`;
  if (name === 'HSET' || name === 'HMSET')
    return keys[0] === `${queue}:meta` && /^(opts\.|version$)/.test(String(args[1]));
  return keys.slice(1).some((key) => typeof key === 'string' && QUEUE_KEY.exec(key)?.[1] === queue);
}
