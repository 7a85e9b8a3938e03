import type { Type } from '@nestjs/common';
import type { Method } from '../../request/decorated-method.js';
import type { DeferFunction } from '../deferred-work.js';
import type { WorkOptions } from '../work-options.js';
import type { AnyWork } from './work-providers.js';

/** The work that a decorator names: a class that injection resolves, or a function. */
export type DeclaredWork = WorkOptions & ({ readonly type: Type<AnyWork> } | { readonly run: DeferFunction });

/** The works of one wrapper of a method. */
export interface Declaration {
  /** In the order in which they run. */
  readonly works: DeclaredWork[];
  readonly method: Method;
  wrapper: object | null;
  /** Another decorator of this library's has wrapped the same method before, with a foreign wrapper between. */
  readonly inner: Declaration | null;
}
