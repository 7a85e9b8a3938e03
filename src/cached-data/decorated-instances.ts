import type { ModulesContainer } from '@nestjs/core';
import { isMinified } from '../core/class-name.js';
import { PerfError } from '../core/perf.error.js';
import { prototypeOf, wrappersOf } from '../request/prototypes.js';
import { isTakenFromClass } from '../request/route-handler.js';
import { declaredOn, type Declared } from './decorators.js';

type Wrapper = ReturnType<typeof wrappersOf>[number];

/** One provider with decorated methods. */
export interface DecoratedInstance {
  readonly instance: object;
  /** `'Catalogue'`, with the token where that is not its class: what tells it apart in every pod. */
  readonly name: string;
  /** A minifier has made the name, or a part of it. */
  readonly isMinified: boolean;
  readonly methods: readonly (readonly [property: string, declared: Declared, method: object])[];
}

/**
 * Every provider of an application with decorated methods, those of factories and values included.
 * @throws PERF_ERR_DECORATOR for what is no provider of the whole application
 */
export function decoratedInstances(modules: ModulesContainer): DecoratedInstance[] {
  const controllers = new Set<Wrapper>([...modules.values()].flatMap((module) => [...module.controllers.values()]));
  const found = new Map<object, DecoratedInstance>();
  for (const wrapper of wrappersOf(modules)) {
    const prototype = prototypeOf(wrapper);
    const methods = prototype === null ? [] : declaredOn(prototype);
    for (const [property, { kind }, method] of methods) {
      const obstacle = controllers.has(wrapper)
        ? 'a controller. Move the method to a provider; for whole responses there is @SharedResponse().'
        : obstacleTo(wrapper, method);
      if (obstacle === null) continue;
      const decorator = kind === 'cached' ? '@Cached()' : '@Preloaded()';
      const where = `${decorator} on "${wrapper.name}.${property}"`;
      throw new PerfError('PERF_ERR_DECORATOR', `${where} stands on ${obstacle}`);
    }
    const instance = wrapper.instance as object;
    if (methods.length === 0 || found.has(instance)) continue;
    const types = [instance.constructor, wrapper.token].filter((part) => typeof part === 'function');
    found.set(instance, { instance, methods, name: nameOf(wrapper, instance), isMinified: types.some(isMinified) });
  }
  return [...found.values()];
}

/** What the method of a provider stands on, in words, and what to do; null where it can be cached. */
function obstacleTo(wrapper: Wrapper, method: object): string | null {
  const advice = 'Move the method to a provider of the default scope, which depends on none of another.';
  if (wrapper.isTransient) return `a transient provider. ${advice}`;
  if (!wrapper.isDependencyTreeStatic()) return `a request-scoped provider. ${advice}`;
  if (!isTakenFromClass(method)) return null;
  return (
    'a handler of WebSocket messages or of GraphQL, which Nest takes from its class. ' +
    'Move the method to a provider that the handler calls.'
  );
}

function nameOf({ token }: Wrapper, instance: object): string {
  const type = instance.constructor;
  if (token === type) return type.name;
  return `${type.name}(${typeof token === 'function' ? token.name : String(token)})`;
}
