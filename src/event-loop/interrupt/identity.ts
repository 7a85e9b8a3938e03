import { requestContext } from '../../core/request-context.js';
import type { RequestOwner, RequestState } from '../../core/request-state.js';
import type { Frame } from '../frame.js';
import type { Identity, Source } from './probe.js';
import type { Slots } from './slots.js';

/**
 * Whose code runs, where the application's requests enter the context store: the store also follows timers and event
 * emitters. Where both know a request and do not agree (shared work: one request began it, another waits for it), neither
 * is named. A queue that starts its next job when the one before is done starts it in the context of the job before: so what
 * the store says of a request that waits for something else is no proof by itself. Called inside the interrupt.
 */
export class StoreIdentity implements Identity {
  source: Source | null = null;

  constructor(
    private readonly slots: Slots,
    private readonly application: RequestOwner,
  ) {}

  show(): void {
    this.slots.show();
  }

  of(frames: readonly Frame[]): RequestState | null {
    const waiting = this.slots.of(frames);
    const stored = requestContext.getStore() ?? null;
    this.source = null;
    if (stored === null || stored.owner !== this.application) {
      this.source = this.slots.source;
      return waiting;
    }
    if (waiting !== null && waiting !== stored) return null;
    this.source = this.slots.source ?? (this.slots.waits(stored) ? 'aside' : 'store');
    return stored;
  }
}
