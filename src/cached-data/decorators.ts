import { decoratedMethods } from '../core/method-metadata.js';
import { PerfError } from '../core/perf.error.js';
import { wrapMethod } from '../request/decorated-method.js';
import { needExtension } from '../request/extension.js';
import { cachedOption, preloadedOption } from './cached.options.js';
import type { CachedOptions, PreloadedOptions, ResolvedCached, ResolvedPreloaded } from './cached.options.js';
import type { MethodCache } from './method-cache.js';

const DECLARED_METADATA = 'perf:cached-data';

/**
 * By instance, then by the method that is decorated: an override that calls the method of its base class has its own. A call of an
 * instance that is not here runs the method.
 */
export const cachedInstances = new WeakMap<object, Map<object, MethodCache<any>>>();

/** A decorated method, as it was before. */
export type Declared = { readonly method: Source } & (
  | { readonly kind: 'cached'; readonly options: ResolvedCached }
  | { readonly kind: 'preloaded'; readonly options: ResolvedPreloaded }
);

type Source = (...args: any[]) => Promise<unknown>;
/** Decorator of a method that returns a promise. */
export type AsyncMethodDecorator = <T extends Source>(
  target: object,
  property: string | symbol,
  descriptor: TypedPropertyDescriptor<T>,
) => void;

/**
 * On a provider's method that returns a promise: equal calls are answered by one load. A value is fresh for `ttlMs`; then it is
 * served for `staleMs` at the most, at once, while one load runs or when loads fail. Calls from within the class count too.
 * Every caller gets the same object: do not change it. Needs `extensions: [cache()]`.
 *
 * @example
 * ```ts
 * @Cached({ ttlMs: 60_000, staleMs: 600_000 }) product(id: string): Promise<Product> { … }
 * ```
 * @throws PERF_ERR_OPTION, PERF_ERR_DECORATOR where it is applied
 */
export function Cached(options: CachedOptions): AsyncMethodDecorator {
  return declare('@Cached()', (where, method) => ({
    kind: 'cached',
    method,
    options: cachedOption.read(options, `${where} @Cached`),
  }));
}

/**
 * On a provider's method without arguments that returns a promise: loaded before the server listens, and then on an interval,
 * with or without calls. A load that fails leaves the last value. Needs `extensions: [cache()]`.
 *
 * @example
 * ```ts
 * @Preloaded({ everyMs: 30_000 }) brands(): Promise<readonly Brand[]> { … }
 * ```
 * @throws PERF_ERR_OPTION, PERF_ERR_DECORATOR where it is applied
 */
export function Preloaded(options: PreloadedOptions): AsyncMethodDecorator {
  return declare('@Preloaded()', (where, method) => {
    if (method.length > 0) {
      throw misuse('@Preloaded()', where, 'it must take no arguments. For a value by arguments use @Cached().');
    }
    return { kind: 'preloaded', method, options: preloadedOption.read(options, `${where} @Preloaded`) };
  });
}

function declare(decorator: string, read: (where: string, method: Source) => Declared): AsyncMethodDecorator {
  return (target, property, descriptor) => {
    const where = `${(typeof target === 'function' ? target : target.constructor).name}.${String(property)}`;
    const method = (descriptor as PropertyDescriptor | undefined)?.value as unknown;
    if (typeof method !== 'function' || typeof target === 'function' || typeof property === 'symbol') {
      throw misuse(
        decorator,
        where,
        'it must be a method of an instance, with a name. Move it to one, beneath what leaves an accessor there.',
      );
    }
    if (Reflect.hasOwnMetadata(DECLARED_METADATA, target, property)) {
      throw misuse(decorator, where, 'one of its kind may stand there.');
    }
    needExtension({ name: 'cache', decorator, add: 'extensions: [cache()]' }, target, property);
    Reflect.defineMetadata(DECLARED_METADATA, read(where, method as Source), target, property);
    wrapMethod(descriptor as PropertyDescriptor, (wrapped) => ({
      wrapper(this: unknown, ...args: unknown[]): unknown {
        const calls = cachedInstances.get(this as object)?.get(wrapped);
        return calls === undefined ? wrapped.apply(this, args) : calls.call(args);
      },
    }));
  };
}

const misuse = (decorator: string, where: string, problem: string): PerfError =>
  new PerfError('PERF_ERR_DECORATOR', `${decorator} on "${where}": ${problem}`);

/** The decorated methods of a class and those that it extends. */
export const declaredOn = (prototype: object) =>
  decoratedMethods(DECLARED_METADATA, prototype) as [name: string, declared: Declared, placed: object][];
