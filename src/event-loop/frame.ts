/** One call of a stack, as raw as the engine tells it. */
export interface Frame {
  readonly name: string | null;
  readonly file: string | null;
  readonly line: number;
  readonly column: number;
  /** Line on which the function's own text begins; 0 where the engine does not tell. */
  readonly functionLine: number;
  /** The call waits for what runs: it is not on the machine's stack. */
  readonly async: boolean;
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

/** Whether a frame is code that the user wrote: no Node internals, no dependency, none of this library's. */
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

/** Whether it begins in a read from a socket, a request's or another. */
export const beginsInRead = (frames: readonly Frame[]): boolean => runs(frames, isRead) || runs(frames, isHttp);

/** Whether it begins in a read from a socket that is not a request of the HTTP server. */
export const beginsInForeignRead = (frames: readonly Frame[]): boolean => runs(frames, isRead) && !runs(frames, isHttp);
