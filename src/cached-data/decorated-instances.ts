import { types } from 'node:util';
import type { ModulesContainer } from '@nestjs/core';
import { PerfError } from '../core/perf.error.js';
import { findPrototype, listWrappers } from '../request/prototypes.js';
import { declaredOn, type Declared } from './decorators.js';

/** Names of so many characters may be a minifier's: another build gives them to other classes. */
const MINIFIED_LENGTH = 3;

type Wrapper = ReturnType<typeof listWrappers>[number];

/** One provider with decorated methods. */
export interface DecoratedInstance {
  readonly instance: object;
  /** `'Catalogue'`, with the token where that is not its class: unique, and equal in every pod. */
  readonly name: string;
  /** A minifier may have made the name, or a part of it. */
  readonly isMinified: boolean;
  readonly methods: readonly (readonly [property: string, declared: Declared])[];
}

/**
 * Every provider of an application with decorated methods, those of factories and values included.
 * @throws PERF_ERR_DECORATOR for a controller, and a provider that is made more than once
 */
export function decoratedInstances(modules: ModulesContainer): DecoratedInstance[] {
  const controllers = new Set<Wrapper>([...modules.values()].flatMap((module) => [...module.controllers.values()]));
  const found = new Map<object, DecoratedInstance>();
  for (const wrapper of listWrappers(modules)) {
    const prototype = findPrototype(wrapper);
    const methods =
      prototype === null ? [] : declaredOn(prototype).map(([property, declared]) => [property, declared] as const);
    for (const [property, { kind }] of methods) {
      const obstacle = controllers.has(wrapper)
        ? 'a controller. Move the method to a provider; for whole responses there is @SharedResponse().'
        : obstacleTo(wrapper);
      if (obstacle === null) continue;
      const decorator = kind === 'cached' ? '@Cached()' : '@Preloaded()';
      const where = `${decorator} on "${wrapper.name}.${property}"`;
      throw new PerfError('PERF_ERR_DECORATOR', `${where} stands on ${obstacle}`);
    }
    const instance = wrapper.instance as object;
    if (methods.length === 0 || found.has(instance)) continue;
    const types = [instance.constructor, wrapper.token].filter((part) => typeof part === 'function');
    found.set(instance, {
      instance,
      methods,
      name: nameInstance(wrapper, instance),
      isMinified: types.some(({ name }) => name.length <= MINIFIED_LENGTH),
    });
  }
  return [...found.values()];
}

/** Why a provider's methods cannot be cached, and what to do; null where they can. */
function obstacleTo(wrapper: Wrapper): string | null {
  const advice = 'Move the method to a provider of the default scope, which depends on none of another.';
  if (types.isProxy(wrapper.instance))
    return 'a provider behind a `Proxy`: its methods run on another object than the one that Nest has. Leave it out of `instrument.instanceDecorator`.';
  if (wrapper.isTransient) return `a transient provider. ${advice}`;
  if (!wrapper.isDependencyTreeStatic()) return `a request-scoped provider. ${advice}`;
  return null;
}

function nameInstance({ token }: Wrapper, instance: object): string {
  const type = instance.constructor;
  if (token === type) return type.name;
  return `${type.name}(${typeof token === 'function' ? token.name : String(token)})`;
}
