import type { JobQueue } from '../deferred-work.js';

/** Jobs that differ in id and data only. */
export interface Run {
  readonly name: string;
  /** Of its first job. */
  readonly opts: object;
  readonly ids: string[];
  /** Data, JSON. */
  readonly jsons: string[];
}

/** These calls cannot be made for a whole run; nothing has been sent. */
export class NotShared extends Error {}

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
  readonly options?: { readonly enableAutoPipelining?: boolean };
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
/** Where that script reads its first and third argument. */
const READS = ['cmsgpack.unpack(ARGV[1])', 'cmsgpack.unpack(ARGV[3])'];

/**
 * The same queue, whose `addBulk` sends one script call for all jobs of a bulk where BullMQ sends one for each. What is
 * run is BullMQ's own script, in a loop, with the arguments that BullMQ has made: the jobs are the same. With `runs`,
 * `addBulk` takes the first job of each run, and the script stores the others with its arguments.
 *
 * Why: a job costs about 20 µs of CPU by `addBulk`, no less than by `add`: a job object, two encodings, a command, a
 * reply and several promises each, and for each bulk an ioredis pipeline, whose constructor copies all of BullMQ's
 * scripts (100 µs). Null for a queue of another shape (another backend, a later BullMQ). A Cluster, a client that
 * pipelines by itself, or jobs of another kind go BullMQ's way; with `runs` they reject with {@link NotShared}.
 */
export function withBulkScript<Q extends JobQueue>(queue: Q, runs: readonly Run[] | null): Q | null {
  const { backend, client } = queue as BullmqQueue;
  if (backend?.queue?.client instanceof Promise) {
    const { queue: parts } = backend;
    const seen = Object.create(parts, { client: { get: () => bulkClient(parts.client, runs) } }) as object;
    const seenBackend = Object.create(backend, { queue: { value: seen } }) as object;
    return Object.create(queue, { backend: { value: seenBackend } }) as Q;
  }
  if (backend === undefined && client instanceof Promise) {
    return Object.create(queue, { client: { get: () => bulkClient((queue as BullmqQueue).client, runs) } }) as Q;
  }
  return null;
}

async function bulkClient(connected: unknown, runs: readonly Run[] | null): Promise<unknown> {
  const client = (await connected) as Client;
  // An automatic pipeline that is open already does not know a script that is defined meanwhile, and ioredis throws for it.
  const isPlain = client.isCluster !== true && client.options?.enableAutoPipelining !== true;
  if (!isPlain || client.scriptsSet === undefined) {
    if (runs !== null) throw new NotShared();
    return client;
  }
  return Object.create(client, { pipeline: { value: () => new BulkScript(client, runs) } }) as unknown;
}

/** Stands in for a pipeline: keeps its calls, and makes one of them when all add a job to one queue. */
class BulkScript implements Pipeline {
  private readonly calls: Call[] = [];

  constructor(
    private readonly client: Client,
    private readonly runs: readonly Run[] | null,
  ) {}

  runCommand(name: string, args: readonly unknown[]): this {
    this.calls.push({ name, args });
    return this;
  }

  async exec(): Promise<unknown> {
    const { calls, client, runs } = this;
    const [first] = calls;
    if (runs === null && first !== undefined && calls.length === 1) {
      return [[null, await client.runCommand(first.name, first.args)]];
    }
    const name = this.define();
    if (name === null || first === undefined) {
      if (runs !== null) throw new NotShared();
      return this.execAsPipeline();
    }
    const args = first.args.slice(0, KEYS);
    for (let i = 0; i < calls.length; i++) pushRun(args, calls[i]!.args, runs?.[i]);
    const ids = (await client.runCommand(name, args)) as unknown[];
    return ids.map((id) => [null, id]);
  }

  /** The name of the looping script; null when these calls cannot be made by it. */
  private define(): string | null {
    const { calls, client, runs } = this;
    const [first] = calls;
    if (first === undefined || !ADD.test(first.name) || (runs !== null && runs.length !== calls.length)) return null;
    for (const { name, args } of calls) {
      const fits = name === first.name && args.length === KEYS + ARGUMENTS && args[0] === first.args[0];
      if (!fits) return null;
    }
    const name = `perf:${first.name}`;
    if (client.scriptsSet?.[name] !== undefined) return name;
    const lua = client.scriptsSet?.[first.name]?.lua;
    if (typeof lua !== 'string' || READS.some((read) => lua.split(read).length !== 2)) return null;
    client.defineCommand(name, { numberOfKeys: KEYS, lua: inLoop(lua) });
    return name;
  }

  private execAsPipeline(): Promise<unknown> {
    const pipeline = this.client.pipeline();
    for (const { name, args } of this.calls) pipeline.runCommand(name, args);
    return pipeline.exec();
  }
}

/** As {@link inLoop} takes it: two packed arguments, how many jobs, and of each its id and its data. */
function pushRun(args: unknown[], made: readonly unknown[], run: Run | undefined): void {
  args.push(made[KEYS], made[KEYS + 2], run?.ids.length ?? 1);
  if (run === undefined) args.push('', made[KEYS + 1]);
  else for (let i = 0; i < run.ids.length; i++) args.push(run.ids[i], run.jsons[i]);
}

/**
 * The script as a function of its own KEYS and ARGV, called once for each job. It is given its packed arguments as
 * tables already, with the job's id in them; an empty id leaves them as they are. Answers with the id of each run's first.
 */
const inLoop = (lua: string): string => `local function addJob(KEYS, ARGV, cmsgpack)
${lua}
end
local messages = setmetatable({unpack = function(given)
  if type(given) == 'table' then return given end
  return cmsgpack.unpack(given)
end}, {__index = cmsgpack})
local ids = {}
local at = 1
while at <= #ARGV do
  local args, opts, count = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
  at = at + 3
  for i = 1, count do
    local jobArgs, jobOpts = cmsgpack.unpack(args), cmsgpack.unpack(opts)
    if ARGV[at] ~= '' then
      jobArgs[2] = ARGV[at]
      jobOpts['jobId'] = ARGV[at]
    end
    local id = addJob(KEYS, {jobArgs, ARGV[at + 1], jobOpts}, messages)
    if i == 1 then ids[#ids + 1] = id end
    at = at + 2
  end
end
return ids
`;
