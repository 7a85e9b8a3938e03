import type { WorkType } from '../core/record.js';
import { requestContext, type RequestState } from '../request/request-state.js';

/** A method that is measured: its class, its name, and the function that has its metadata. */
export interface MeasuredMethod {
  readonly owner: { readonly name: string };
  readonly name: string;
  readonly method: object;
}

/** The measured work of one application. */
export interface Works {
  /** False once the application has closed. */
  readonly isOpen: boolean;
  /** A call begins; null where it is not measured. */
  begin(type: WorkType, measured: MeasuredMethod): RequestState | null;
  /** Aborted: the caller has left. */
  end(state: RequestState, failed: boolean, aborted?: boolean): void;
}

/** On prototypes that have a measured method, and on that method's wrapper. */
export const MEASURED_METADATA = 'perf:measured';
export const isMeasuredClass = (prototype: object): boolean => Reflect.hasMetadata(MEASURED_METADATA, prototype);
export const isMeasuredMethod = (method: object): boolean => Reflect.hasOwnMetadata(MEASURED_METADATA, method);

const byInstance = new WeakMap<object, Works>();
/** For instances that Nest makes for each request or job: the application that has last registered the class. */
const byPrototype = new WeakMap<object, Works>();

export function registerWorks(works: Works, prototype: object, instance: object | null): void {
  byPrototype.set(prototype, works);
  if (instance !== null) byInstance.set(instance, works);
}

/** Finds the application of a call: nothing injects anything into a decorator. */
export function findWorks(instance: unknown): Works | null {
  const stored = (requestContext.getStore()?.owner.works ?? null) as Works | null;
  if (typeof instance !== 'object' || instance === null) return stored;
  const known = byInstance.get(instance) ?? stored;
  const works = known ?? byPrototype.get(Object.getPrototypeOf(instance) as object) ?? null;
  return works?.isOpen === true ? works : null;
}
