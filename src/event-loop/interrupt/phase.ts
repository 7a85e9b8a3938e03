import { attach, type Attachment } from '../../core/attachment.js';
import type { RequestState } from '../../core/request-state.js';

/** How far a request is, as its route function and handler tell. */
export type Phase =
  /** No route function yet, or never one: middleware, a GraphQL server behind `app.use()`. */
  | 'before'
  /** In its route function, ahead of the handler: guards, pipes, interceptors. */
  | 'route'
  /** The handler runs, or its promise waits by name. */
  | 'handler'
  /** The handler goes on where no stack shows it: observables, thenables, callbacks. */
  | 'open'
  /** The handler is done: interceptors, serialisation. */
  | 'after'
  /** The route function is done, and the response has begun. */
  | 'done';

/** By which change a request entered each phase; 0: not yet. */
export interface Progress {
  route: number;
  handler: number;
  open: number;
  after: number;
  done: number;
  /** Handlers that are not done: one may call another. */
  handlers: number;
}

const KEY: Attachment<Progress> = attach<Progress>('request');

/** Null while no route function was called. Safe inside the interrupt. */
export const progressOf = (state: RequestState): Progress | null => KEY.get(state);

export function beginProgress(state: RequestState): Progress {
  const known = KEY.get(state);
  if (known !== null) return known;
  const progress: Progress = { route: 0, handler: 0, open: 0, after: 0, done: 0, handlers: 0 };
  KEY.set(state, progress);
  return progress;
}

const PHASES = ['route', 'handler', 'open', 'after', 'done'] as const;

/** The phase that a request was in when there had been `changes`, and which of them had brought it there. */
export function phaseAt(progress: Progress | null, changes: number): { phase: Phase; enteredBy: number } {
  let [phase, enteredBy]: [Phase, number] = ['before', 0];
  if (progress === null) return { phase, enteredBy };
  for (const name of PHASES) {
    const change = progress[name];
    if (change > enteredBy && change <= changes) [phase, enteredBy] = [name, change];
  }
  return { phase, enteredBy };
}
