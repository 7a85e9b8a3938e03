import { MAX_TIMER_MS } from './clock.js';

/** Node ends a process whose timers and threads are all unref'd, as ours are, in the middle of an `await`: not during this one. */
export async function holdingProcess<T>(work: () => Promise<T>): Promise<T> {
  const hold = setTimeout(() => {}, MAX_TIMER_MS);
  try {
    return await work();
  } finally {
    clearTimeout(hold);
  }
}
