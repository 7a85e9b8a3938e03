import type { JobQueue } from '../deferred-work.js';

/** One call of a BullMQ script: KEYS, then ARGV. */
interface Call {
  readonly name: string;
  readonly args: readonly unknown[];
}
interface Pipeline {
  runCommand(name: string, args: readonly unknown[]): unknown;
  exec(): Promise<unknown>;
}
/** The part of BullMQ's Redis client that is used; BullMQ 5.7x and later 5, and 6. */
interface Client {
  readonly isCluster?: boolean;
  /** ioredis' scripts by name. */
  readonly scriptsSet?: Record<string, { readonly lua?: unknown } | undefined>;
  pipeline(): Pipeline;
  runCommand(name: string, args: readonly unknown[]): Promise<unknown>;
  defineCommand(name: string, script: { numberOfKeys: number; lua: string }): unknown;
}
interface BullmqQueue extends JobQueue {
  /** BullMQ 5 */
  readonly client?: unknown;
  /** BullMQ 6 */
  readonly backend?: { readonly queue?: { readonly client?: unknown } };
}

/** BullMQ's script for a job that waits for nothing, and how many keys and arguments it takes. */
const ADD = /^addStandardJob:/;
const KEYS = 9;
const ARGUMENTS = 3;

/**
 * The same queue, whose `addBulk` sends one script call for all jobs of a bulk where BullMQ sends one for each. What is
 * run is BullMQ's own script, in a loop, with the arguments that BullMQ has made: the jobs are the same.
 *
 * Why: a job costs about 20 µs of CPU by `addBulk`, no less than by `add`: a command, an encoding, a reply and several
 * promises each, and for each bulk an ioredis pipeline, whose constructor copies all of BullMQ's scripts (100 µs).
 * A queue of another shape (another backend, a Cluster, delayed jobs, a later BullMQ) is used as it is.
 */
export function withBulkScript<Q extends JobQueue>(queue: Q): Q {
  const { backend, client } = queue as BullmqQueue;
  if (backend?.queue?.client instanceof Promise) {
    const { queue: parts } = backend;
    const seen = Object.create(parts, { client: { get: () => bulkClient(parts.client) } }) as object;
    const seenBackend = Object.create(backend, { queue: { value: seen } }) as object;
    return Object.create(queue, { backend: { value: seenBackend } }) as Q;
  }
  if (backend === undefined && client instanceof Promise) {
    return Object.create(queue, { client: { get: () => bulkClient((queue as BullmqQueue).client) } }) as Q;
  }
  return queue;
}

async function bulkClient(connected: unknown): Promise<unknown> {
  const client = (await connected) as Client;
  if (client.isCluster === true || client.scriptsSet === undefined) return client;
  return Object.create(client, { pipeline: { value: () => new BulkScript(client) } }) as unknown;
}

/** Stands in for a pipeline: keeps its calls, and makes one of them when all add a job to one queue. */
class BulkScript implements Pipeline {
  private readonly calls: Call[] = [];

  constructor(private readonly client: Client) {}

  runCommand(name: string, args: readonly unknown[]): this {
    this.calls.push({ name, args });
    return this;
  }

  async exec(): Promise<unknown> {
    const { calls, client } = this;
    const [first] = calls;
    if (first !== undefined && calls.length === 1) return [[null, await client.runCommand(first.name, first.args)]];
    const name = this.define();
    if (name === null || first === undefined) return this.execAsPipeline();
    const args = first.args.slice(0, KEYS);
    for (const call of calls) args.push(call.args[KEYS], call.args[KEYS + 1], call.args[KEYS + 2]);
    const ids = (await client.runCommand(name, args)) as unknown[];
    return ids.map((id) => [null, id]);
  }

  /** The name of the looping script; null when these calls cannot be made by it. */
  private define(): string | null {
    const { calls, client } = this;
    const [first] = calls;
    if (first === undefined || !ADD.test(first.name)) return null;
    for (const { name, args } of calls) {
      const fits = name === first.name && args.length === KEYS + ARGUMENTS && args[0] === first.args[0];
      if (!fits) return null;
    }
    const name = `perf:${first.name}`;
    if (client.scriptsSet?.[name] !== undefined) return name;
    const lua = client.scriptsSet?.[first.name]?.lua;
    if (typeof lua !== 'string') return null;
    client.defineCommand(name, { numberOfKeys: KEYS, lua: inLoop(lua) });
    return name;
  }

  private execAsPipeline(): Promise<unknown> {
    const pipeline = this.client.pipeline();
    for (const { name, args } of this.calls) pipeline.runCommand(name, args);
    return pipeline.exec();
  }
}

/** The script as a function of its own KEYS and ARGV, called once for each job. */
const inLoop = (lua: string): string => `local function addJob(KEYS, ARGV)
${lua}
end
local ids = {}
for i = 1, #ARGV, ${ARGUMENTS} do
  ids[#ids + 1] = addJob(KEYS, {ARGV[i], ARGV[i + 1], ARGV[i + 2]})
end
return ids
`;
