import { attach, type Attachable } from './attachment.js';
import { requestContext } from './request-context.js';
import type { RequestState } from './request-state.js';

/** Tells the request whose code calls, without the context store; null when it cannot. Costs some microseconds. */
export const CURRENT_REQUEST = attach<() => RequestState | null>('application');

/** The request of `application` whose code calls this; null outside of one, or when it cannot be told. */
export function currentRequest(application: Attachable): RequestState | null {
  const stored = requestContext.getStore();
  if (stored !== undefined && stored.owner === application) return stored;
  return CURRENT_REQUEST.get(application)?.() ?? null;
}
