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
  /** How many regular samples it stands for; 0: it was taken only because the loop did not turn. */
  readonly due: number;
  /** Innermost first; none and not `cut`: the loop was idle. */
  readonly frames: readonly Frame[];
  /** The request of the async context; null: none of this application. */
  readonly state: RequestState | null;
  /** The resolver or measured method within the request; null: the request's own code. */
  readonly scope?: RequestState | null;
  /** Frames were left out, because the stack is too deep or could not be read. */
  readonly cut: boolean;
}

/** Whether the loop was waiting for events. Before Node 24 the store may still have its last request then. */
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

/** Files of Node that restore the context of one request: promises, timers, bound callbacks, HTTP messages. */
const OWN_CONTEXT =
  /^node:(?:_http_(?:common|server|client)$|internal\/http2\/|async_hooks$|internal\/(?:process\/task_queues$|timers$|async_hooks$|async_local_storage\/|async_context_frame$))/;
/** Files of Node that restore the context in which a handle was opened, whichever request uses it now. */
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

/** Whether the innermost code is a synchronous call of Node's, as `readFileSync`. */
export function isInSyncIo({ frames }: Pick<Sample, 'frames'>): boolean {
  const running = selectRunning(frames);
  const end = running.findIndex((frame) => frame.file !== null && !isNodes(frame));
  const own = end < 0 ? running : running.slice(0, end);
  return own.some((frame) => isIn(frame, IO_FILES) && frame.name?.endsWith('Sync') === true);
}

/** Whether the stack is one function that a promise has resumed: a sample that a native call delayed is taken there, maybe in the next request. */
export function isOnlyResumed({ frames }: Pick<Sample, 'frames'>): boolean {
  const running = selectRunning(frames);
  const end = running.findIndex((frame) => isIn(frame, OWN_CONTEXT));
  return (end < 0 ? running.length : end) < 2;
}
