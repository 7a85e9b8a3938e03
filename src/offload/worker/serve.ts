import { subscribe } from 'node:diagnostics_channel';
import { performance } from 'node:perf_hooks';
import { receiveMessageOnPort, type MessagePort, type Transferable } from 'node:worker_threads';
import { loadInWorker } from '../load-here.js';
import { notCloneable, offloadError } from '../offload.errors.js';
import { withOffloadContext } from '../offload-context.js';
import { sentError } from '../sent-error.js';
import type { Order, Said, ThreadTask } from '../thread-pool.js';
import { classLostIn, movableIn } from '../transferables.js';
import { WorkerApplication } from './application.js';
import { exportsOf, functionIn } from './load.js';

/** https://nodejs.org/api/diagnostics_channel.html#net: before the port is bound. */
const LISTENS = 'tracing:net.server.listen:asyncStart';

const importFile = (href: string): Promise<unknown> => import(href);
const load = (href: string): Promise<unknown> => loadInWorker(href, importFile);

let application: Promise<WorkerApplication> | null = null;
/** The task that is being served. */
let current: { port: MessagePort; started: boolean } | null = null;

const say = (port: MessagePort, said: Said, move: readonly Transferable[] = []): void => port.postMessage(said, move);

subscribe(LISTENS, () => {
  const refused = offloadError(
    'A worker of offload() must not listen: `module` and the files of `Offloader.run()` hold what is computed, not the file ' +
      'that starts a server (main.ts).',
  );
  end(refused);
});

/** The worker ends, and says why to who waits for it. */
function end(why: unknown): void {
  const error = sentError(why);
  if (current?.started === true) say(current.port, { said: 'failed', error, runMs: 0, busyMs: 0 });
  else if (current !== null) say(current.port, { said: 'not-booted', error });
  process.exit(1);
}

/** A worker's program: one task. */
export async function serve(task: ThreadTask): Promise<void> {
  current = { port: task.port, started: false };
  await served(task).finally(() => (current = null));
}

async function served(task: ThreadTask): Promise<void> {
  const { port, order } = task;
  if (order.do === 'end') {
    try {
      await (await application)?.close();
    } finally {
      process.exit(0);
    }
  }
  if (order.do === 'file') {
    return run(task, order, async ([input]) =>
      functionIn(await exportsOf(new URL(order.file), load), order.file)(input),
    );
  }
  let booted: WorkerApplication;
  try {
    booted = await (application ??= WorkerApplication.boot(load));
  } catch (error) {
    return end(error);
  }
  if (order.do === 'boot') return say(port, { said: 'booted', methods: booted.names });
  return run(task, order, async (parameters) => booted.call(order.name, parameters));
}

type Work = Extract<Order, { do: 'method' | 'file' }>;

async function run(
  { port, context }: ThreadTask,
  { name, transfer }: Work,
  work: (parameters: unknown[]) => Promise<unknown>,
): Promise<void> {
  say(port, { said: 'started', at: Date.now() });
  if (current !== null) current.started = true;
  const startedMs = performance.now();
  const before = performance.eventLoopUtilization();
  const spent = (): { runMs: number; busyMs: number } => ({
    runMs: performance.now() - startedMs,
    busyMs: performance.eventLoopUtilization(before).active,
  });
  try {
    const parameters = receiveMessageOnPort(port)?.message as unknown[];
    // This worker took too long to start, and nobody waits any more.
    if (receiveMessageOnPort(port) !== undefined) return;
    const value = await withOffloadContext(context!, () => work(parameters));
    const times = spent();
    try {
      say(port, { said: 'done', value, lostClass: classLostIn(value), ...times }, transfer ? movableIn(value) : []);
    } catch (error) {
      throw notCloneable(`The result of "${name}"`, error, value);
    }
  } catch (error) {
    say(port, { said: 'failed', error: sentError(error), ...spent() });
  }
}
