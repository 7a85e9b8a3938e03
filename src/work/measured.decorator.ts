import type { Type } from '@nestjs/common';
import { PerfError } from '../core/perf.error.js';
import type { WorkType } from '../core/record.js';
import { decorateMethods, decoratedPlace, requireMethod, wrapMethod } from '../request/decorated-method.js';
import { listMethods, servesRoute } from '../request/prototypes.js';
import { runMeasured } from './run-measured.js';
import { findEntryType, chooseWorkType } from './work-type.js';
import { findWorks, isMeasuredMethod, MEASURED_METADATA } from './works.js';

/**
 * Measures each call of a method that no HTTP request starts: a cron job, a processor of a queue, a handler of messages, events or
 * sockets, a resolver, or any method of a provider. On a class: all its methods that Nest calls. Blocks, upstream calls and notes
 * of a call are its own. What it returns and throws is passed on; on a handler of HTTP it does nothing.
 * @throws PERF_ERR_DECORATOR on a class without such a method
 * @example
 * ```ts
 * @Cron('0 * * * *') @Measured() async rebuild() { … }
 * ```
 */
export function Measured(): MethodDecorator & ClassDecorator {
  return (target: object, key?: string | symbol, descriptor?: PropertyDescriptor) => {
    if (key !== undefined) return measure(requireMethod('@Measured', target, key, descriptor), target, key);
    const { prototype } = target as Type;
    const names = listMethods(prototype as object).flatMap(([name, method]) => (isEntry(name, method) ? [name] : []));
    if (names.length === 0) throw nothingToMeasure(decoratedPlace(target, undefined));
    let at = 0;
    decorateMethods(target as Type, names, (method) => measure(method, prototype as object, names[at++]!));
  };
}

/** The decorators of a class run last, and `@Processor()` may not have run yet: `process` is taken by its name. */
const isEntry = (name: string, method: object): boolean =>
  name === 'process' || findEntryType(method) !== null || servesRoute(method);

function measure(descriptor: PropertyDescriptor, target: object, key: string | symbol): void {
  Reflect.defineMetadata(MEASURED_METADATA, true, target);
  // On its class and on the method: once is enough.
  if (isMeasuredMethod(descriptor.value as object)) return;
  const name = String(key);
  let type: WorkType | null | undefined;
  wrapMethod(descriptor, (method) => {
    function wrapper(this: unknown, ...parameters: unknown[]): unknown {
      const proceed = (): unknown => method.apply(this, parameters);
      const works = findWorks(this);
      if (works === null) return proceed();
      const owner = findOwner(this) ?? (typeof target === 'function' ? target : target.constructor);
      // Decorators above this one have left their metadata by the first call.
      if (type === undefined) type = chooseWorkType(owner, name, wrapper);
      const state = type === null ? null : works.begin(type, { owner, name, method: wrapper });
      return state === null ? proceed() : runMeasured(works, state, proceed, type !== 'method');
    }
    return { wrapper, metadata: [[MEASURED_METADATA, true]] };
  });
}

const findOwner = (instance: unknown): { readonly name: string } | null =>
  typeof instance === 'object' && instance !== null && typeof instance.constructor === 'function'
    ? instance.constructor
    : null;

const nothingToMeasure = (place: string): PerfError =>
  new PerfError(
    'PERF_ERR_DECORATOR',
    `@Measured on "${place}" finds no method that Nest calls: none has @Cron, @Interval, @OnEvent, @MessagePattern, ` +
      '@EventPattern, @SubscribeMessage, @Query or their like. Put it on the methods themselves.',
  );
