import { inRootContext } from '../core/root-context.js';

/** When every promise that is settled now has been heard, as DataLoader does. */
export function atEndOfTurn(work: () => void): void {
  inRootContext(() => queueMicrotask(() => process.nextTick(work)));
}
