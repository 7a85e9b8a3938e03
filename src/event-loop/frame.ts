/** One call of a stack, as raw as the engine tells it. */
export interface Frame {
  readonly name: string | null;
  /** The class of what a method was called on; absent or null where there is none. */
  readonly typeName?: string | null;
  readonly file: string | null;
  readonly line: number;
  readonly column: number;
  /** Line on which the function's own text begins; 0 where the engine does not tell. */
  readonly functionLine: number;
  /** The call waits for what runs: it is not on the machine's stack. */
  readonly async: boolean;
}

/**
 * How a request is known. `sync`: its code is on the stack; `named`: its name is; `store`: only the context store tells, before
 * its handler; `aside`: the same, once its handler has begun.
 */
export type Source = 'sync' | 'named' | 'store' | 'aside';

/**
 * Why no request is known. `unseen`: one whose chain the stack does not show may run. `disputed`: two are known, and do not
 * agree. `background`: the store says that no request's code runs.
 */
export type Unknown = 'unseen' | 'disputed' | 'background';

/** One look at the blocked stack. `S` names a request. */
export interface Look<S> {
  /** When the watchdog asked, and when the blocked code let it in; monotonic milliseconds. */
  readonly requestedMs: number;
  readonly servedMs: number;
  readonly state: S | null;
  readonly source: Source | null;
  /** Why `state` is null; null when it is not. */
  readonly unknown: Unknown | null;
  readonly frames: readonly Frame[];
  /** Frames were left out because the stack is too deep. */
  readonly cut: boolean;
  /** How often phases had changed by then, and when the block began. */
  readonly changes: number;
  readonly changesBefore: number;
  /** For a look that came too late to see its request: whose route function or handler settled next. */
  readonly settledNext: S | null;
}

/** What the watchdog evaluates is a function of this name: it and all above it are not the application's. */
export const PROBE_NAME = 'perfProbe';
/** Runs after a native call so that a look at the stack lands in the guilty frame; see safepoints.ts. */
export const SAFEPOINT_NAME = 'perfSafepoint';

/** The stack without the frames that looking at it has added. */
export function withoutProbe(frames: readonly Frame[]): readonly Frame[] {
  const probe = frames.findIndex((frame) => frame.name === PROBE_NAME);
  // The evaluated script's own top-level frame stands below the function.
  const own = probe < 0 ? frames : frames.slice(probe + 2);
  const safepoint = own.findIndex((frame) => frame.name === SAFEPOINT_NAME);
  return safepoint < 0 ? own : own.slice(safepoint + 2);
}

/** The calls that are on the machine's stack. */
export const runningFrames = (frames: readonly Frame[]): readonly Frame[] => {
  const end = frames.findIndex((frame) => frame.async);
  return end < 0 ? frames : frames.slice(0, end);
};

/**
 * Whether a frame is code that the user wrote: no Node internals, no dependency, none of this library's. The watchdog's thread is
 * given this as text (see watchdog-source.ts): it uses nothing from outside.
 */
export function isUserFrame(frame: Frame, ownFolder: string | null): boolean {
  const { file, name } = frame;
  if (file === null || file === '' || file.startsWith('node:') || file.startsWith('evalmachine')) return false;
  if (file.includes('/node_modules/') || file.includes('\\node_modules\\')) return false;
  if (name?.startsWith('perf:') === true) return false;
  return ownFolder === null || !file.startsWith(ownFolder);
}

const isRead = (file: string | null): boolean => file === 'node:internal/stream_base_commons';
const isHttp = (file: string | null): boolean => file === 'node:_http_server' || file === 'node:internal/http2/core';

/** Whether a running call is of one of these files. Loops and compares only: the interrupt calls it. */
function runs(frames: readonly Frame[], isOne: (file: string | null) => boolean): boolean {
  for (let i = 0; i < frames.length && !frames[i]!.async; i++) if (isOne(frames[i]!.file)) return true;
  return false;
}

/** Whether the stack begins where the HTTP server hands out a request. */
export const beginsInRequest = (frames: readonly Frame[]): boolean => runs(frames, isHttp);

export const beginsInRead = (frames: readonly Frame[]): boolean => runs(frames, isRead) || runs(frames, isHttp);

export const beginsInForeignRead = (frames: readonly Frame[]): boolean => runs(frames, isRead) && !runs(frames, isHttp);

// What a stack proves. From here on nothing is called inside the interrupt: there are regular expressions.

/** A look, as far as its stack can prove something. */
type Seen = Pick<Look<unknown>, 'state' | 'source' | 'frames' | 'cut'>;

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

/** Whether it is called back by what requests often share: a timer that runs for all, a worker, another process, a datagram socket. */
export function isSharedCallback(frames: readonly Frame[]): boolean {
  const running = runningFrames(withoutProbe(frames));
  return running.some(({ file }) => file !== null && (file === TIMERS || CHANNEL.test(file)));
}

const CHANNEL = /^node:(?:dgram$|internal\/(?:per_context\/messageport$|worker|child_process$|cluster|fs\/watchers$))/;

/** Whether a timer of nobody knows whom runs. What RxJS delays is a request's more likely than not. */
export function isBareTimer(frames: readonly Frame[]): boolean {
  const running = runningFrames(withoutProbe(frames));
  const loop = running.find(({ file }) => file !== null && RUNS_OTHERS.has(file));
  return loop?.file === TIMERS && !running.some(({ file }) => file !== null && RXJS.test(file));
}

/** In a bundle it cannot be told. */
const RXJS = /[/\\]node_modules[/\\]rxjs[/\\]/;

/** Whether a late look was let in inside the call that held it up: one of Node's own `…Sync` kind, or a safepoint. */
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
