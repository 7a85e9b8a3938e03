import { subscribe } from 'node:diagnostics_channel';
import { performance } from 'node:perf_hooks';
import { receiveMessageOnPort, threadId, type MessagePort, type Transferable } from 'node:worker_threads';
import { loadInWorker } from '../load-file.js';
import { notCloneable, offloadError } from '../offload.errors.js';
import { offloadModule } from '../../core/offload-thread.js';
import { withOffloadContext } from '../offload-context.js';
import { sendError } from '../sent-error.js';
import type { OffloadContext, Order, Said, ThreadTask } from '../thread-pool.js';
import { findMovable } from '../transferables.js';
import { WorkerApplication } from './application.js';
import { loadExports, functionIn, moduleIn } from './load.js';

/** https://nodejs.org/api/diagnostics_channel.html#net: before the port is bound. */
const LISTENS = 'tracing:net.server.listen:asyncStart';

const importFile = (href: string): Promise<unknown> => import(href);
const load = (href: string): Promise<unknown> => loadInWorker(href, importFile);

let application: Promise<WorkerApplication> | null = null;
/** The task in progress. */
let current: { port: MessagePort; started: boolean } | null = null;

const say = (port: MessagePort, said: Said, move: readonly Transferable[] = []): void => port.postMessage(said, move);

subscribe(LISTENS, () => {
  const refused = offloadError(
    'A worker of offload() must not listen: `module` and the files of `Offloader.run()` must not be the file that ' +
      'starts a server (main.ts).',
  );
  end(refused);
});

/** Ends the worker, with an answer to the task that it serves. */
function end(why: unknown): void {
  const error = sendError(why);
  if (current?.started === true) say(current.port, { said: 'failed', error, runMs: 0, busyMs: 0 });
  else if (current !== null) say(current.port, { said: 'not-booted', error });
  process.exit(1);
}

/** A worker's program: one task. */
export async function serve({ port, order, context }: ThreadTask): Promise<void> {
  if (port === null) return;
  if (order.do === 'end') return closeApplication(port);
  current = { port, started: false };
  say(port, { said: 'taken', threadId });
  await serveOrder(port, order, context).finally(() => (current = null));
}

async function closeApplication(port: MessagePort): Promise<never> {
  try {
    await (await application)?.close();
  } finally {
    say(port, { said: 'booted' });
  }
  return new Promise(() => {});
}

async function serveOrder(port: MessagePort, order: Order, context: OffloadContext | null): Promise<void> {
  if (order.do === 'file') {
    return run(port, context, order, async ([input]) =>
      functionIn(await loadExports(new URL(order.file), load), order.file)(input),
    );
  }
  if (order.do === 'load') return loadModule(port);
  let booted: WorkerApplication;
  try {
    booted = await (application ??= WorkerApplication.boot(load));
  } catch (error) {
    return end(error);
  }
  if (order.do === 'method')
    return run(port, context, order, async (parameters) => booted.call(order.name, parameters));
  say(port, { said: 'booted' });
}

/** Finds out whether the module's file can be loaded. */
async function loadModule(port: MessagePort): Promise<void> {
  say(port, { said: 'started', at: Date.now() });
  if (current !== null) current.started = true;
  try {
    const file = offloadModule()!;
    moduleIn(await loadExports(new URL(file), load), file);
    say(port, { said: 'booted' });
  } catch (error) {
    say(port, { said: 'failed', error: sendError(error), runMs: 0, busyMs: 0 });
  }
}

type Work = Extract<Order, { do: 'method' | 'file' }>;

async function run(
  port: MessagePort,
  context: OffloadContext | null,
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
    // The worker took too long to start: its caller has given up.
    if (receiveMessageOnPort(port) !== undefined) return;
    const value = await withOffloadContext(context!, () => work(parameters));
    const times = spent();
    try {
      say(port, { said: 'done', value, ...times }, transfer ? findMovable(value) : []);
    } catch (error) {
      throw notCloneable(`The result of "${name}"`, error);
    }
  } catch (error) {
    say(port, { said: 'failed', error: sendError(error), ...spent() });
  }
}
