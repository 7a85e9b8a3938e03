import { boolean, object } from '../core/option.js';

/** How requests are observed. */
export interface HttpOptions {
  /**
   * Express on Node 20 and 22: requests and responses get the properties that Express will set before it changes their
   * prototypes, which saves a third of an Express request's CPU time. Nothing is done on newer Nodes.
   * @default true
   */
  expressProperties?: boolean;
}

export const httpOption = object({ expressProperties: boolean({ default: true }) });
