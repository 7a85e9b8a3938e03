import type { Type } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { describe } from '../../core/option.js';
import { PerfError } from '../../core/perf.error.js';
import {
  decorateMethods,
  decoratedPlace,
  requireMethod,
  wrapMethod,
  type Method,
} from '../../request/decorated-method.js';
import { storedRequest } from '../../request/request-state.js';
import { requireRoutes } from '../../request/handlers.js';
import { listUnroutedMethods } from '../../request/prototypes.js';
import type { DeferFunction, DeferTarget, DeferWorkOptions } from '../deferred-work.js';
import { readWorkOptions, type WorkOptions } from '../work-options.js';
import { mergeWorkOptions } from './durable-work.decorator.js';
import { isClass, type AnyWork } from './work-providers.js';

/** The work that a decorator names: a class that injection resolves, or a function. */
export type DeclaredWork = WorkOptions & ({ readonly type: Type<AnyWork> } | { readonly run: DeferFunction });

/** The works that one wrapper of a method arms. */
export interface Declaration {
  /** In the order in which they run. */
  readonly works: DeclaredWork[];
  readonly method: Method;
  wrapper: object | null;
  /** An earlier `@DeferWork` on the same method, when another library's decorator has wrapped the method in between. */
  readonly inner: Declaration | null;
}

const DEFER_WORK_METADATA = 'perf:defer-work';

/**
 * Runs work after the response of the decorated handler, or of every handler of the decorated controller: a class that
 * is resolved from DI, or a function. It may be repeated; the controller's work runs before the handler's, each in source order.
 * @throws PERF_ERR_DECORATOR, PERF_ERR_OPTION where it is applied
 * @example
 * ```ts
 * @Post() @DeferWork(SendReceipt) create() { … }
 * ```
 */
export function DeferWork(work: DeferTarget, options?: DeferWorkOptions): MethodDecorator & ClassDecorator {
  return (target: object, propertyKey?: string | symbol, descriptor?: PropertyDescriptor) => {
    const where = decoratedPlace(target, propertyKey);
    const declared = declare(work, options, where);
    if (propertyKey === undefined) {
      const names = requireRoutes('@DeferWork', target as Type);
      decorateMethods(target as Type, names, (method, isInherited) => addWork(method, declared, isInherited));
      return;
    }
    addWork(requireMethod('@DeferWork', target, propertyKey, descriptor), declared, false);
  };
}

/** Wraps the method at its first work only. Decorators are applied from the last to the first, a class's after its methods'. */
function addWork(descriptor: PropertyDescriptor, work: DeclaredWork, isInherited: boolean): void {
  const before = (Reflect.getOwnMetadata(DEFER_WORK_METADATA, descriptor.value as object) ??
    null) as Declaration | null;
  const own = before !== null && before.wrapper === descriptor.value ? before : null;
  if (own !== null && !isInherited) {
    own.works.unshift(work);
    return;
  }
  const method = own?.method ?? (descriptor.value as Method);
  const works = [work, ...(own?.works ?? [])];
  const declaration: Declaration = { works, method, wrapper: null, inner: own === null ? before : own.inner };
  wrapMethod(descriptor, () => ({
    wrapper(this: unknown, ...parameters: unknown[]): unknown {
      const proceed = (): unknown => method.apply(this, parameters);
      const state = storedRequest();
      const deferrer = state?.owner.deferrer ?? null;
      return deferrer === null ? proceed() : deferrer.runHandler(declaration, this, state!, proceed);
    },
    metadata: [[DEFER_WORK_METADATA, declaration]],
  }));
  declaration.wrapper = descriptor.value as Method;
}

/** The declarations on a method, the outermost first. */
export function declarationsOn(method: object): Declaration[] {
  const declarations: Declaration[] = [];
  let next = (Reflect.getMetadata(DEFER_WORK_METADATA, method) ?? null) as Declaration | null;
  for (; next !== null; next = next.inner) declarations.push(next);
  return declarations;
}

/** @throws PERF_ERR_DECORATOR when `@DeferWork` decorates a method without a response: its work would silently never run */
export function refuseStrayWork(modules: ModulesContainer): void {
  const stray = listUnroutedMethods(modules).find(({ method }) => declarationsOn(method).length > 0);
  if (stray === undefined) return;
  throw new PerfError(
    'PERF_ERR_DECORATOR',
    `@DeferWork decorates "${stray.where}", which serves no HTTP route. Inject \`Deferrer\` and call \`deferrer.defer()\` there.`,
  );
}

function declare(work: unknown, options: DeferWorkOptions | undefined, where: string): DeclaredWork {
  const merged = typeof work === 'function' ? mergeWorkOptions(work, options) : options;
  const read = readWorkOptions(merged, `${where} @DeferWork`);
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

function misuse(where: string, problem: string, advice: string): PerfError {
  return new PerfError('PERF_ERR_DECORATOR', `@DeferWork on "${where}" ${problem}. ${advice}`.trimEnd());
}
