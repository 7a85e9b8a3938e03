import type { EventEmitter } from 'node:events';

const LISTENERS: unique symbol = Symbol('perf:listeners');

/** A test double of a client may have no `listeners()`: it gets one listener for each application. */
type Emitter = Pick<EventEmitter, 'on' | 'off' | 'prependListener'> & Partial<Pick<EventEmitter, 'listeners'>>;
type Listener = (given: never) => void;
interface Shared {
  (given: unknown): void;
  readonly [LISTENERS]: Set<Listener>;
}

/** Adds a listener to an emitter that all applications of a process share, where they have one together: Node warns above ten. Returns its removal. */
export function listenShared(
  emitter: Emitter,
  event: string,
  listener: Listener,
  add: 'on' | 'prependListener' = 'on',
): () => void {
  const known: unknown = typeof emitter.listeners === 'function' ? emitter.listeners(event) : null;
  let shared = Array.isArray(known) ? known.find(isShared) : undefined;
  if (shared === undefined) emitter[add](event, (shared = madeShared()));
  const { [LISTENERS]: listeners } = shared;
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) emitter.off(event, shared);
  };
}

const isShared = (listener: unknown): listener is Shared => typeof listener === 'function' && LISTENERS in listener;

function madeShared(): Shared {
  const listeners = new Set<Listener>();
  const callAll = (given: unknown): void => {
    for (const listener of listeners) listener(given as never);
  };
  return Object.assign(callAll, { [LISTENERS]: listeners });
}
