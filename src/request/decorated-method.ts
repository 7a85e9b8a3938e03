import { PerfError } from '../core/perf.error.js';

export type Method = (this: unknown, ...parameters: unknown[]) => unknown;

const OWN_TO_FUNCTIONS: ReadonlySet<PropertyKey> = new Set(['length', 'name', 'prototype', 'arguments', 'caller']);

/** A decorated member or class in a message: `'OrdersController.create'`. */
export function decoratedPlace(target: object, key: string | symbol | undefined): string {
  if (key === undefined) return (target as { name?: string }).name ?? 'a class';
  const owner = typeof target === 'function' ? target : target.constructor;
  return `${owner.name}.${String(key)}`;
}

/** @throws PERF_ERR_DECORATOR for a member that is no method: a property, or an accessor */
export function requireMethod(
  decorator: string,
  target: object,
  key: string | symbol,
  descriptor: PropertyDescriptor | undefined,
): PropertyDescriptor {
  if (typeof descriptor?.value === 'function') return descriptor;
  throw new PerfError(
    'PERF_ERR_DECORATOR',
    `${decorator} on "${decoratedPlace(target, key)}" needs a method, and this is a property or an accessor. ` +
      'Move it to a method. Where another decorator turns methods into accessors, put that one above.',
  );
}

interface Wrapped {
  readonly wrapper: Method;
  /** Metadata that replaces the method's under the same key. */
  readonly metadata?: readonly (readonly [key: string, value: unknown])[];
}

/** Replaces the method of a property by a wrapper that has its name, length, metadata and properties. */
export function wrapMethod(descriptor: PropertyDescriptor, wrap: (method: Method) => Wrapped): void {
  const method = descriptor.value as Method;
  const { wrapper, metadata = [] } = wrap(method);
  const { name, length } = method;
  Object.defineProperties(wrapper, {
    name: { value: name, configurable: true },
    length: { value: length, configurable: true },
  });
  for (const key of Reflect.ownKeys(method)) {
    const property = Object.getOwnPropertyDescriptor(method, key)!;
    if (!OWN_TO_FUNCTIONS.has(key)) Object.defineProperty(wrapper, key, property);
  }
  for (const key of Reflect.getOwnMetadataKeys(method) as unknown[]) {
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, method), wrapper);
  }
  for (const [key, value] of metadata) Reflect.defineMetadata(key, value, wrapper);
  descriptor.value = wrapper;
}

/** Decorates methods of a class. An inherited one becomes its own property, so that the base class stays as it is. */
export function decorateMethods(
  { prototype }: { readonly prototype: object },
  names: readonly string[],
  decorate: (descriptor: PropertyDescriptor, isInherited: boolean) => void,
): void {
  for (const name of names) {
    const own = Object.getOwnPropertyDescriptor(prototype, name);
    const value: unknown = Reflect.get(prototype, name);
    const descriptor = own ?? { value, writable: true, enumerable: false, configurable: true };
    decorate(descriptor, own === undefined);
    Object.defineProperty(prototype, name, descriptor);
  }
}
