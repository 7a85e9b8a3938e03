import { PerfError } from '../core/perf.error.js';
import { needExtension } from '../http/extension.js';
import {
  readCached,
  readPreloaded,
  type CachedOptions,
  type PreloadedOptions,
  type ResolvedCached,
  type ResolvedPreloaded,
} from './cached.options.js';

/** On a prototype: what its own decorated methods ask for. */
const DECLARED_METADATA = 'perf:cached-data';

/** What stands on a method. */
export type Declared =
  | { readonly kind: 'cached'; readonly options: ResolvedCached }
  | { readonly kind: 'preloaded'; readonly options: ResolvedPreloaded };

type Source = (...args: any[]) => Promise<unknown>;
/** Of a method that returns a promise. */
export type AsyncMethodDecorator = <T extends Source>(
  target: object,
  property: string | symbol,
  descriptor: TypedPropertyDescriptor<T>,
) => void;

/**
 * On a provider's method that returns a promise: equal calls are answered by one load. A value is fresh for `ttlMs`; then it is
 * served for `staleMs` at the most, at once, while one load runs or when loads fail. Calls from within the class count too.
 * Every caller gets the same object: outside of production it is frozen. Needs `extensions: [cache()]`.
 *
 * @example
 * ```ts
 * @Cached({ ttlMs: 60_000, staleMs: 600_000 }) product(id: string): Promise<Product> { … }
 * ```
 * @throws PERF_ERR_OPTION, PERF_ERR_DECORATOR where it stands
 */
export function Cached(options: CachedOptions): AsyncMethodDecorator {
  return (target, property, descriptor) => {
    const name = '@Cached()';
    const where = declare(target, property, descriptor, name);
    add(target, property, name, { kind: 'cached', options: readCached(options, `${where} @Cached`) });
  };
}

/**
 * On a provider's method without arguments that returns a promise: loaded before the server listens, and then on an interval,
 * asked for or not. A load that fails leaves the last value. Needs `extensions: [cache()]`.
 *
 * @example
 * ```ts
 * @Preloaded({ everyMs: 30_000 }) brands(): Promise<readonly Brand[]> { … }
 * ```
 * @throws PERF_ERR_OPTION, PERF_ERR_DECORATOR where it stands
 */
export function Preloaded(options: PreloadedOptions): AsyncMethodDecorator {
  return (target, property, descriptor) => {
    const name = '@Preloaded()';
    const where = declare(target, property, descriptor, name);
    if (descriptor.value!.length > 0) {
      throw misuse(name, where, 'it must take no arguments', 'For a value by arguments use @Cached().');
    }
    add(target, property, name, { kind: 'preloaded', options: readPreloaded(options, `${where} @Preloaded`) });
  };
}

/** What is declared on a class and those that it extends; a method that is overridden stands for itself. */
export function declaredOn(prototype: object): ReadonlyMap<string, Declared> {
  const found = new Map<string, Declared>();
  const overridden = new Set<string>();
  for (let at: object | null = prototype; at !== null && at !== Object.prototype; at = Reflect.getPrototypeOf(at)) {
    for (const [name, declared] of ownOf(at)) if (!overridden.has(name)) found.set(name, declared);
    for (const name of Object.getOwnPropertyNames(at)) overridden.add(name);
  }
  return found;
}

function declare(target: object, property: string | symbol, descriptor: unknown, decorator: string): string {
  const where = `${(typeof target === 'function' ? target : target.constructor).name}.${String(property)}`;
  const method = (descriptor as PropertyDescriptor | undefined)?.value as unknown;
  if (typeof method !== 'function' || typeof target === 'function' || typeof property === 'symbol') {
    throw misuse(decorator, where, 'it must be a method of an instance, with a name', 'Move it to one.');
  }
  needExtension(method, { name: 'cache', decorator, add: 'extensions: [cache()]' });
  return where;
}

function add(target: object, property: string | symbol, decorator: string, declared: Declared): void {
  const name = String(property);
  const own = ownOf(target);
  if (own.has(name))
    throw misuse(decorator, `${target.constructor.name}.${name}`, 'one of its kind may stand there', '');
  Reflect.defineMetadata(DECLARED_METADATA, new Map(own).set(name, declared), target);
}

const ownOf = (prototype: object): ReadonlyMap<string, Declared> =>
  (Reflect.getOwnMetadata(DECLARED_METADATA, prototype) ?? new Map()) as ReadonlyMap<string, Declared>;

function misuse(decorator: string, where: string, problem: string, advice: string): PerfError {
  return new PerfError('PERF_ERR_DECORATOR', `${decorator} on "${where}": ${problem}. ${advice}`.trimEnd());
}
