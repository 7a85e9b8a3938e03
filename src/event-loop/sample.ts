import type { RequestState } from '../request/request-state.js';

/** One call of a stack, as the engine describes it. */
export interface Frame {
  readonly name: string | null;
  /** The class of the object on which a method was called; absent or null where there is none. */
  readonly typeName?: string | null;
  readonly file: string | null;
  readonly line: number;
  readonly column: number;
  /** Line on which the function's own text begins; 0 where the engine does not know. */
  readonly functionLine: number;
  /** The call waits for the code that runs: it is not on the machine's stack. */
  readonly async: boolean;
}

/** One stack sample of the main thread. */
export interface Sample {
  /** Monotonic milliseconds. */
  readonly atMs: number;
  /**
   * Milliseconds of the loop that the sample represents: the mean interval of its rate, once for each moment that was due until
   * the main thread served it. Moments are due at random, whatever the loop does. 0: taken because the loop stood still.
   */
  readonly intervalMs: number;
  /** Innermost first; none and not `cut`: the loop was idle. */
  readonly frames: readonly Frame[];
  /** The request of the async context. Null: none of this application. */
  readonly state: RequestState | null;
  /** Frames were left out, because the stack is too deep or could not be read. */
  readonly cut: boolean;
}

/** A sample as the probe keeps it. */
export interface TakenSample extends Omit<Sample, 'intervalMs'> {
  /** When the thread asked for it. A native call that V8 cannot interrupt delays the answer. */
  readonly askedMs: number;
  /** Moments of the sampling rate that it represents; 0: it was taken because the loop stood still. */
  readonly due: number;
}

/** Raises the rate of samples. */
export interface SampleRate {
  /** Takes at least so many samples a second until the returned function is called. */
  ask(perSecond: number): () => void;
}

/** The thread evaluates a function of this name: neither it nor the calls above it are the application's. */
export const PROBE_NAME = 'perfProbe';

/** The stack without the frames that taking the sample has added. */
export function withoutProbe(frames: readonly Frame[]): readonly Frame[] {
  const probe = frames.findIndex(({ name }) => name === PROBE_NAME);
  // The evaluated script's own top-level frame is below the function.
  return probe < 0 ? frames : frames.slice(probe + 2);
}

/** No code ran: the loop was waiting for events. The store may still have its last request on Node 20. */
export const isIdle = ({ frames }: Pick<Sample, 'frames'>): boolean =>
  frames.length > 0 && withoutProbe(frames).length === 0;

/** The calls that are on the machine's stack. */
export const runningFrames = (frames: readonly Frame[]): readonly Frame[] => {
  const end = frames.findIndex((frame) => frame.async);
  return end < 0 ? frames : frames.slice(0, end);
};

/**
 * Whether a frame is code of the application: no Node internals, no dependency, none of this library's. The sampler's thread
 * is given this function as text (see sampler-source.ts): it uses nothing from outside.
 */
export function isApplicationFrame({ file }: Frame, ownFolder: string | null): boolean {
  if (file === null || file === '' || /^(?:node:|wasm:|evalmachine|native )/.test(file)) return false;
  if (file.includes('/node_modules/') || file.includes('\\node_modules\\')) return false;
  return ownFolder === null || !file.startsWith(ownFolder);
}

const isNodes = ({ file }: Frame): boolean => file?.startsWith('node:') === true;
const matches = ({ file }: Frame, files: RegExp): boolean => file !== null && files.test(file);

/** Node restores the context of one request in these: promises, timers, bound callbacks, messages of HTTP. */
const OWN_CONTEXT =
  /^node:(?:_http_(?:common|server|client)$|internal\/http2\/|async_hooks$|internal\/(?:process\/task_queues$|timers$|async_hooks$|async_local_storage\/|async_context_frame$))/;
/** The context of these is that of the code which opened the handle, whoever uses it now. */
const SHARED_HANDLES =
  /^node:(?:net$|dgram$|child_process$|worker_threads$|cluster$|internal\/(?:stream_base_commons$|dgram$|child_process|cluster\/|worker|per_context\/messageport$|fs\/watchers$))/;

/** Whether a handle that requests may share (a socket, a worker, a child process) has called the code that runs. */
export function isCalledBySharedHandle(frames: readonly Frame[]): boolean {
  const running = runningFrames(withoutProbe(frames));
  const outer = running.slice(running.findIndex((frame) => frame.file !== null && !isNodes(frame)) + 1);
  const caller = outer.find((frame) => matches(frame, OWN_CONTEXT) || matches(frame, SHARED_HANDLES));
  return caller !== undefined && !matches(caller, OWN_CONTEXT);
}

const IO_FILES = /^node:(?:internal\/)?(?:fs|child_process)(?:$|\/)/;

/** Whether a `…Sync` call for files or other processes runs. */
export function isInSyncIo(frames: readonly Frame[]): boolean {
  for (const frame of runningFrames(withoutProbe(frames))) {
    if (frame.file !== null && !isNodes(frame)) return false;
    if (matches(frame, IO_FILES) && frame.name?.endsWith('Sync') === true) return true;
  }
  return false;
}

/**
 * Whether the stack is one function that a promise has resumed. V8 answers a sample that a native call has delayed at the next
 * function: the next one in a queue of promises may be another request's.
 */
export function isOnlyResumed(frames: readonly Frame[]): boolean {
  const running = runningFrames(withoutProbe(frames));
  const end = running.findIndex((frame) => matches(frame, OWN_CONTEXT));
  return (end < 0 ? running.length : end) < 2;
}
