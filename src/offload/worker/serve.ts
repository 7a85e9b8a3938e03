import { performance } from 'node:perf_hooks';
import { receiveMessageOnPort, threadId, type Transferable } from 'node:worker_threads';
import { within } from '../../core/within.js';
import { functionIn, loadExports, moduleIn, type ImportFile } from '../load-file.js';
import { notCloneable, offloadError } from '../offload.errors.js';
import { sendError } from '../sent-error.js';
import type { Reply, ThreadTask } from '../thread-pool.js';
import { findMovable } from '../transferables.js';
import { startApplication, type CallMethod } from './application.js';

type Work = (parameters: unknown[]) => unknown;

/** Time for an application to start. */
const STARTING_MS = 30_000;

let application: Promise<CallMethod> | null = null;

/** A worker's program: one task. `importFile`: the build, which is CommonJS, has no `import()` that stays one. */
export async function serve(task: ThreadTask, importFile: ImportFile): Promise<void> {
  const { port, name, transfer, deadlineAt } = task;
  const reply = (said: Reply, move: readonly Transferable[] = []): void => port.postMessage(said, move);
  let work: Work;
  try {
    work = await prepare(task, importFile);
  } catch (error) {
    reply({ said: 'failed', error: sendError(error), runMs: 0, busyMs: 0 });
    process.exit(1);
  }
  reply({ said: 'started', at: Date.now(), threadId: application === null ? null : threadId });
  // The worker took too long to start: its caller has given up.
  if (Date.now() >= deadlineAt) return;
  const startedMs = performance.now();
  const before = performance.eventLoopUtilization();
  const spent = (): { runMs: number; busyMs: number } => ({
    runMs: performance.now() - startedMs,
    busyMs: performance.eventLoopUtilization(before).active,
  });
  try {
    const value = await work(receiveMessageOnPort(port)?.message as unknown[]);
    const times = spent();
    try {
      reply({ said: 'done', value, ...times }, transfer ? findMovable([value]) : []);
    } catch (error) {
      throw notCloneable(`The result of "${name}"`, error);
    }
  } catch (error) {
    reply({ said: 'failed', error: sendError(error), ...spent() });
  }
}

/** Starts the application where the task needs one. */
async function prepare({ do: kind, name, file }: ThreadTask, importFile: ImportFile): Promise<Work> {
  const load = () => loadExports(new URL(file), importFile);
  if (kind === 'load') return async () => void moduleIn(await load(), file);
  if (kind === 'file') return async ([input]) => functionIn(await load(), file)(input);
  application ??= startApplication(file, importFile);
  if (!(await within(STARTING_MS, () => application!)))
    throw offloadError(`it takes more than ${STARTING_MS / 1_000} s`);
  const callMethod = await application;
  return kind === 'boot' ? () => null : (parameters) => callMethod(name, parameters);
}
