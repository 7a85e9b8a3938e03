import { performance } from 'node:perf_hooks';
import { receiveMessageOnPort, threadId, type MessagePort, type Transferable } from 'node:worker_threads';
import { loadInWorker } from '../load-file.js';
import { notCloneable } from '../offload.errors.js';
import { offloadModule } from '../../core/offload-thread.js';
import { withOffloadContext } from '../offload-context.js';
import { sendError } from '../sent-error.js';
import type { OffloadContext, Order, Said, ThreadTask } from '../thread-pool.js';
import { findMovable } from '../transferables.js';
import { WorkerApplication } from './application.js';
import { loadExports, functionIn, moduleIn } from './load.js';

const importFile = (href: string): Promise<unknown> => import(href);
const load = (href: string): Promise<unknown> => loadInWorker(href, importFile);

let application: Promise<WorkerApplication> | null = null;

const say = (port: MessagePort, said: Said, move: readonly Transferable[] = []): void => port.postMessage(said, move);

/** A worker's program: one task. */
export async function serve({ port, order, context }: ThreadTask): Promise<void> {
  switch (order.do) {
    case 'load':
      return loadModule(port);
    case 'end':
      return closeApplication(port);
    case 'file':
      return run(port, context!, order, async ([input]) =>
        functionIn(await loadExports(new URL(order.file), load), order.file)(input),
      );
  }
  try {
    const booted = await (application ??= WorkerApplication.boot(load));
    if (order.do === 'boot') done(port);
    else await run(port, context!, order, async (parameters) => booted.call(order.name, parameters));
  } catch (error) {
    say(port, { said: 'not-booted', error: sendError(error) });
    process.exit(1);
  }
}

/** Finds out whether the module's file can be loaded. */
async function loadModule(port: MessagePort): Promise<void> {
  say(port, { said: 'started', at: Date.now(), threadId: null });
  try {
    const file = offloadModule()!;
    moduleIn(await loadExports(new URL(file), load), file);
    done(port);
  } catch (error) {
    say(port, { said: 'failed', error: sendError(error), runMs: 0, busyMs: 0 });
  }
  process.exit();
}

async function closeApplication(port: MessagePort): Promise<never> {
  try {
    await (await application)?.close();
  } finally {
    done(port);
  }
  return new Promise(() => {});
}

const done = (port: MessagePort): void => say(port, { said: 'done', value: null, runMs: 0, busyMs: 0 });

type Work = Extract<Order, { do: 'method' | 'file' }>;

/** Never rejects. */
async function run(
  port: MessagePort,
  context: OffloadContext,
  order: Work,
  work: (parameters: unknown[]) => Promise<unknown>,
): Promise<void> {
  say(port, { said: 'started', at: Date.now(), threadId: order.do === 'file' ? null : threadId });
  // The worker took too long to start: its caller has given up.
  if (Date.now() >= context.deadlineAt) return;
  const startedMs = performance.now();
  const before = performance.eventLoopUtilization();
  const spent = (): { runMs: number; busyMs: number } => ({
    runMs: performance.now() - startedMs,
    busyMs: performance.eventLoopUtilization(before).active,
  });
  try {
    const parameters = receiveMessageOnPort(port)?.message as unknown[];
    const value = await withOffloadContext(context, () => work(parameters));
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
