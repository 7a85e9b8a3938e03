import { runningFrames, SAFEPOINT_NAME, withoutProbe, type Frame } from './frame.js';
import type { Source } from './interrupt/identity.js';

/** A look, as far as its stack can prove something. */
interface Seen {
  readonly state: unknown;
  readonly source: Source | null;
  readonly frames: readonly Frame[];
  readonly cut: boolean;
}

/**
 * Whether Node calls back what was started in this context: a timer, a file, a stream; or RxJS does, which interceptors run in.
 * A job of a shared queue begins in a promise's reaction or tick, in the context of the job that was done before.
 */
export function isCalledBack({ frames, cut }: Seen): boolean {
  if (cut) return false;
  const running = runningFrames(withoutProbe(frames));
  const loop = running.findIndex(({ file }) => file !== null && RUNS_OTHERS.has(file));
  if (loop >= 0 && running[loop]!.file === TIMERS) return true;
  const file = running.at(loop < 0 ? -1 : loop - 1)?.file ?? '';
  return loop !== 0 && (file.startsWith('node:') || RXJS.test(file));
}

/** Whether a timer of nobody knows whom runs. What RxJS delays is a request's more likely than not. */
export function isBareTimer(frames: readonly Frame[]): boolean {
  const running = runningFrames(withoutProbe(frames));
  const loop = running.find(({ file }) => file !== null && RUNS_OTHERS.has(file));
  return loop?.file === TIMERS && !running.some(({ file }) => file !== null && RXJS.test(file));
}

/** In a bundle it cannot be told. */
const RXJS = /[/\\]node_modules[/\\]rxjs[/\\]/;

/**
 * Whether a late look was let in inside the very call that held it up: a synchronous function of Node's own that was
 * entered before (a callee or its second line runs now), or a safepoint.
 */
export function showsNodeCall(look: Seen): boolean {
  if (look.state === null) return false;
  if (look.frames.some(({ name }) => name === SAFEPOINT_NAME)) return true;
  const frames = withoutProbe(look.frames);
  for (let i = 0; i < frames.length; i++) {
    const { name, file, async, line, functionLine } = frames[i]!;
    if (async || (file !== null && (!file.startsWith('node:') || RUNS_OTHERS.has(file)))) return false;
    const entered = i > 0 || (functionLine > 0 && line > functionLine);
    if (entered && file !== null && (SYNC_FILES.test(file) || name?.endsWith('Sync') === true)) return true;
  }
  return false;
}

/** Where Node keeps what blocks: files, child processes, compression, cryptography. */
const SYNC_FILES = /^node:(?:fs$|child_process$|zlib$|internal\/(?:fs|crypto|child_process))/;

/**
 * Whether the native call that held a look up was made inside the stack that it shows. V8 lets a look in where a function is
 * entered, resumed or loops: a caller that still runs was entered before the call had ended, or the look would be of there.
 */
export function showsItsCall(look: Seen): boolean {
  if (look.state === null) return false;
  if (look.source === 'sync' || showsNodeCall(look)) return true;
  const frames = withoutProbe(look.frames);
  const end = frames.findIndex(({ async, file }) => async || (file !== null && RUNS_OTHERS.has(file)));
  return (end < 0 ? frames.length : end) >= 2;
}

const TIMERS = 'node:internal/timers';
/** Node's own loops over ticks, microtasks, timers and hooks: they call one request's code after another's. */
const RUNS_OTHERS: ReadonlySet<string> = new Set([
  'node:internal/process/task_queues',
  TIMERS,
  'node:internal/async_hooks',
]);
