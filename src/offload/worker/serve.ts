import { performance } from 'node:perf_hooks';
import { receiveMessageOnPort, threadId, type MessagePort, type Transferable } from 'node:worker_threads';
import { loadInWorker } from '../load-file.js';
import { notCloneable } from '../offload.errors.js';
import { offloadModule } from '../../core/offload-thread.js';
import { sendError } from '../sent-error.js';
import type { Order, Said, ThreadTask } from '../thread-pool.js';
import { findMovable } from '../transferables.js';
import { startApplication, type CallMethod } from './application.js';
import { loadExports, functionIn, moduleIn } from './load.js';

type Load = (href: string) => Promise<unknown>;

let application: Promise<CallMethod> | null = null;

const say = (port: MessagePort, said: Said, move: readonly Transferable[] = []): void => port.postMessage(said, move);

/** A worker's program: one task. `importFile`: the build, which is CommonJS, has no `import()` that stays one. */
export async function serve({ port, order, deadlineAt }: ThreadTask, importFile: Load): Promise<void> {
  const load: Load = (href) => loadInWorker(href, importFile);
  if (order.do === 'load') return loadModule(port, load, order.thenEnds);
  if (order.do === 'file') {
    return run(port, deadlineAt, order, async ([input]) =>
      functionIn(await loadExports(new URL(order.file), load), order.file)(input),
    );
  }
  try {
    const callMethod = await (application ??= startApplication(load));
    if (order.do === 'boot') done(port);
    else await run(port, deadlineAt, order, async (parameters) => callMethod(order.name, parameters));
  } catch (error) {
    say(port, { said: 'not-booted', error: sendError(error) });
    process.exit(1);
  }
}

/** Finds out whether the module's file can be loaded. */
async function loadModule(port: MessagePort, load: Load, thenEnds: boolean): Promise<void> {
  say(port, { said: 'started', at: Date.now(), threadId: null });
  try {
    const file = offloadModule()!;
    moduleIn(await loadExports(new URL(file), load), file);
    done(port);
  } catch (error) {
    say(port, { said: 'failed', error: sendError(error), runMs: 0, busyMs: 0 });
  }
  if (thenEnds) process.exit();
}

const done = (port: MessagePort): void => say(port, { said: 'done', value: null, runMs: 0, busyMs: 0 });

type Work = Extract<Order, { do: 'method' | 'file' }>;

/** Never rejects. */
async function run(
  port: MessagePort,
  deadlineAt: number,
  order: Work,
  work: (parameters: unknown[]) => Promise<unknown>,
): Promise<void> {
  say(port, { said: 'started', at: Date.now(), threadId: order.do === 'file' ? null : threadId });
  // The worker took too long to start: its caller has given up.
  if (Date.now() >= deadlineAt) return;
  const startedMs = performance.now();
  const before = performance.eventLoopUtilization();
  const spent = (): { runMs: number; busyMs: number } => ({
    runMs: performance.now() - startedMs,
    busyMs: performance.eventLoopUtilization(before).active,
  });
  try {
    const parameters = receiveMessageOnPort(port)?.message as unknown[];
    const value = await work(parameters);
    const times = spent();
    try {
      say(port, { said: 'done', value, ...times }, order.transfer ? findMovable(value) : []);
    } catch (error) {
      throw notCloneable(`The result of "${order.name}"`, error);
    }
  } catch (error) {
    say(port, { said: 'failed', error: sendError(error), ...spent() });
  }
}
