import { requestContext } from '../../core/request-context.js';
import type { RequestOwner, RequestState } from '../../core/request-state.js';
import { beginsInRead, type Frame } from '../frame.js';
import type { Naming } from './naming.js';
import { progressOf } from './phase.js';

/** How a request is known. `store`: from the store, before its handler; `aside`: the same, and its handler awaits something else. */
export type Source = 'sync' | 'named' | 'store' | 'aside';

/**
 * Why no request is known. `unseen`: one whose chain the stack does not show may run. `disputed`: two are known, and do not
 * agree. `background`: the store says that no request's code runs.
 */
export type Unknown = 'unseen' | 'disputed' | 'background';

export type Whose =
  | { readonly state: RequestState; readonly source: Source; readonly unknown: null }
  | { readonly state: null; readonly source: null; readonly unknown: Unknown };

// What the interrupt calls is kept from before the application could replace it.
const { apply } = Reflect;
// eslint-disable-next-line typescript/unbound-method -- called with a `this`
const { getStore } = requestContext;

/** Tells whose code runs, by its names and, where the application's requests enter it, by the context store. */
export class Identity {
  constructor(
    private readonly naming: Naming,
    private readonly application: RequestOwner & { readonly contextEnabled: boolean },
  ) {}

  /** `cut`: the frames are not all. Called inside the interrupt. */
  of(frames: readonly Frame[], cut: boolean): Whose {
    const { naming } = this;
    const running = naming.current;
    const named = running ?? naming.named(frames);
    const source = running === null ? 'named' : 'sync';
    if (!this.application.contextEnabled)
      return named === null ? nobody('unseen') : { state: named, source, unknown: null };
    const stored = apply(getStore, requestContext, []) ?? null;
    if (stored === null || stored.owner !== this.application) {
      if (named !== null) return { state: named, source, unknown: null };
      return nobody(stored === null && !cut && !beginsInRead(frames) ? 'background' : 'unseen');
    }
    if (named !== null && named !== stored) return nobody('disputed');
    if (named !== null) return { state: named, source, unknown: null };
    return { state: stored, source: (progressOf(stored)?.handler ?? 0) === 0 ? 'store' : 'aside', unknown: null };
  }
}

const nobody = (unknown: Unknown): Whose => ({ state: null, source: null, unknown });
