import { AsyncLocalStorage } from 'node:async_hooks';
import type { RequestState } from './request-state.js';

/**
 * The one async-context store: who is the current request. Shared by all applications of a process, so that `defer()`
 * works without injection; each application decides whether its requests enter it (`context`), and a
 * {@link RequestState} knows its own application. It holds nothing but what a running request has put there.
 */
export const requestContext = new AsyncLocalStorage<RequestState>();
