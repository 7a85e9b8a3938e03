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

export interface Sample {
  readonly atMs: number;
  /** When the thread requested it. A native call that V8 cannot interrupt delays the answer. */
  readonly askedMs: number;
  /** Moments of the sampling rate that it represents; 0: it was taken because the loop did not turn. */
  readonly due: number;
  /** Innermost first; none and not `cut`: the loop was idle. */
  readonly frames: readonly Frame[];
  /** The request of the async context. Null: none of this application. */
  readonly state: RequestState | null;
  /** A scope within the request, as a resolver's; null: the code was the request's own. */
  readonly scope?: RequestState | null;
  /** Frames were left out, because the stack is too deep or could not be read. */
  readonly cut: boolean;
}

/** No code ran: the loop was waiting for events. The store may still have its last request on Node 20. */
export const isIdle = ({ frames, cut }: Pick<Sample, 'frames' | 'cut'>): boolean => frames.length === 0 && !cut;

const selectRunning = (frames: readonly Frame[]): readonly Frame[] => {
  const end = frames.findIndex((frame) => frame.async);
  return end < 0 ? frames : frames.slice(0, end);
};

/** Whether a frame is code of the application. The sampler's thread runs this function's text (see sampler-source.ts): it uses nothing from outside. */
export function isApplicationFrame({ file }: Frame, ownFolder: string | null): boolean {
  if (file === null || file === '' || /^(?:node:|wasm:|evalmachine|native )/.test(file)) return false;
  if (/[/\\]node_modules[/\\]/.test(file)) return false;
  return ownFolder === null || !file.startsWith(ownFolder);
}

const isNodes = ({ file }: Frame): boolean => file?.startsWith('node:') === true;
const isIn = ({ file }: Frame, files: RegExp): boolean => file !== null && files.test(file);

/** Node restores the context of one request in these: promises, timers, bound callbacks, messages of HTTP. */
const OWN_CONTEXT =
  /^node:(?:_http_(?:common|server|client)$|internal\/http2\/|async_hooks$|internal\/(?:process\/task_queues$|timers$|async_hooks$|async_local_storage\/|async_context_frame$))/;
/** The context of these is that of the code which opened the handle, whoever uses it now. */
const SHARED_HANDLES =
  /^node:(?:net$|dgram$|child_process$|worker_threads$|cluster$|internal\/(?:stream_base_commons$|dgram$|child_process|cluster\/|worker|per_context\/messageport$|fs\/watchers$))/;

/** Whether a handle that requests may share (a socket, a worker, a child process) has called the code that runs. */
export function isCalledBySharedHandle({ frames }: Pick<Sample, 'frames'>): boolean {
  const running = selectRunning(frames);
  const outer = running.slice(running.findIndex((frame) => frame.file !== null && !isNodes(frame)) + 1);
  const caller = outer.find((frame) => isIn(frame, OWN_CONTEXT) || isIn(frame, SHARED_HANDLES));
  return caller !== undefined && !isIn(caller, OWN_CONTEXT);
}

const IO_FILES = /^node:(?:internal\/)?(?:fs|child_process)(?:$|\/)/;

export function isInSyncIo({ frames }: Pick<Sample, 'frames'>): boolean {
  const running = selectRunning(frames);
  const end = running.findIndex((frame) => frame.file !== null && !isNodes(frame));
  const own = end < 0 ? running : running.slice(0, end);
  return own.some((frame) => isIn(frame, IO_FILES) && frame.name?.endsWith('Sync') === true);
}

/** Whether the stack is one function that a promise has resumed. A sample that a native call delays is taken there, and may be of another request. */
export function isOnlyResumed({ frames }: Pick<Sample, 'frames'>): boolean {
  const running = selectRunning(frames);
  const end = running.findIndex((frame) => isIn(frame, OWN_CONTEXT));
  return (end < 0 ? running.length : end) < 2;
}
