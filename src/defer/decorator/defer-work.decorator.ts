import type { Type } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { describe } from '../../core/option.js';
import { PerfError } from '../../core/perf.error.js';
import { bringHandlerInterceptor, bringHandlerInterceptors } from '../../http/handler.interceptor.js';
import { methodsOf, wrappersOf } from '../../http/prototypes.js';
import { servesRoute } from '../../http/route-handler.js';
import type { DeferFunction, DeferTarget, DeferWorkOptions } from '../deferred-work.js';
import { readWorkOptions, type WorkOptions } from '../work-options.js';
import { isClass, type AnyWork } from './work-providers.js';

const DEFER_WORK_METADATA = 'perf:defer-work';

/** What stands on a handler or controller: a class to resolve from DI, or a function. */
export type DeclaredWork = WorkOptions & ({ readonly type: Type<AnyWork> } | { readonly run: DeferFunction });

/**
 * Runs work after the response of the decorated handler, or of every handler of the decorated controller: a class that
 * is resolved from DI, or a function. Stands as often as you like; the controller's work runs before the handler's, each
 * in source order.
 * @throws PERF_ERR_DECORATOR, PERF_ERR_OPTION where it stands
 * @example
 * ```ts
 * @Post() @DeferWork(SendReceipt) create() { … }
 * ```
 */
export function DeferWork(work: DeferTarget, options?: DeferWorkOptions): MethodDecorator & ClassDecorator {
  return (target: object, propertyKey?: string | symbol, descriptor?: PropertyDescriptor) => {
    const where = whereOf(target, propertyKey);
    const declared = declare(work, options, where);
    const place: unknown = propertyKey === undefined ? target : descriptor?.value;
    if (typeof place !== 'function') {
      throw misuse(where, 'stands on a handler method or a controller class', 'Move it there.');
    }
    // Decorators are applied from the last to the first.
    Reflect.defineMetadata(DEFER_WORK_METADATA, [declared, ...ownWorks(place)], place);
    if (propertyKey === undefined) bringHandlerInterceptors(place);
    else bringHandlerInterceptor(place);
  };
}

const ownWorks = (place: object): DeclaredWork[] =>
  (Reflect.getOwnMetadata(DEFER_WORK_METADATA, place) ?? []) as DeclaredWork[];

/** What is declared on a method or class, in source order, behind what is inherited. */
export const worksOn = (place: object | null): DeclaredWork[] =>
  place === null ? [] : [...worksOn(Reflect.getPrototypeOf(place)), ...ownWorks(place)];

/**
 * Stops the boot when `@DeferWork` stands where there is no response to run after: it would silently never run.
 * @throws PERF_ERR_DECORATOR
 */
export function refuseStrayWork(modules: ModulesContainer): void {
  for (const { metatype } of wrappersOf(modules)) {
    if (typeof metatype !== 'function') continue;
    const methods = [...methodsOf((metatype.prototype ?? {}) as object)];
    const isStray = worksOn(metatype).length > 0 && !methods.some(([, method]) => servesRoute(method));
    const stray = methods.find(([, method]) => worksOn(method).length > 0 && !servesRoute(method));
    if (!isStray && stray === undefined) continue;
    const place = isStray ? metatype.name : `${metatype.name}.${stray![0]}`;
    throw new PerfError(
      'PERF_ERR_DECORATOR',
      `@DeferWork stands on "${place}", which serves no HTTP route. Inject \`Deferrer\` and call \`deferrer.defer()\` there.`,
    );
  }
}

function declare(work: unknown, options: DeferWorkOptions | undefined, where: string): DeclaredWork {
  const read = readWorkOptions(options, `${where} @DeferWork`);
  if (typeof work !== 'function') {
    const advice =
      work === undefined ? 'Two files that import each other cause this: move the class to a file of its own.' : '';
    throw misuse(where, `takes a class or a function, got ${describe(work)}`, advice);
  }
  if (isClass(work)) return { ...read, type: work };
  if (read.durable) {
    throw misuse(
      where,
      'cannot make a function durable',
      'A worker in another process finds work by its class: write a class with `prepare` and `run`.',
    );
  }
  return { ...read, run: work as DeferFunction };
}

function whereOf(target: object, propertyKey: string | symbol | undefined): string {
  if (propertyKey === undefined) return (target as { name?: string }).name ?? 'a class';
  const owner = typeof target === 'function' ? target : target.constructor;
  return `${owner.name}.${String(propertyKey)}`;
}

function misuse(where: string, problem: string, advice: string): PerfError {
  return new PerfError('PERF_ERR_DECORATOR', `@DeferWork on "${where}" ${problem}. ${advice}`.trimEnd());
}
