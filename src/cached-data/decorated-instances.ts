import type { ModulesContainer } from '@nestjs/core';
import { PerfError } from '../core/perf.error.js';
import { prototypeOf } from '../http/prototypes.js';
import { isTakenFromClass } from '../http/route-handler.js';
import { declaredOn, type Declared } from './decorators.js';

type Wrapper =
  ModulesContainer extends Map<string, infer M> ? (M extends { providers: Map<unknown, infer W> } ? W : never) : never;

/** One provider with decorated methods. */
export interface DecoratedInstance {
  readonly instance: object;
  /** `'Catalogue'`, with the token where that is not its class: what tells it apart in every pod. */
  readonly name: string;
  readonly methods: ReadonlyMap<string, Declared>;
}

/**
 * Every provider of an application with decorated methods, those of factories and values included.
 * @throws PERF_ERR_DECORATOR for what is no provider of the whole application
 */
export function decoratedInstances(modules: ModulesContainer): DecoratedInstance[] {
  const found = new Map<object, DecoratedInstance>();
  for (const module of modules.values()) {
    for (const wrapper of module.controllers.values()) {
      refuse(wrapper, 'a controller', 'Move the method to a provider; for whole responses there is @SharedResponse().');
    }
    for (const wrapper of [...module.providers.values(), ...module.injectables.values()]) {
      if (!wrapper.isDependencyTreeStatic() || wrapper.isTransient) {
        const what = wrapper.isTransient ? 'a transient provider' : 'a request-scoped provider';
        refuse(wrapper, what, 'Move the method to a provider of the default scope, which depends on none of another.');
      }
      const methods = methodsOf(wrapper);
      const handlers = [...methods].filter(([name]) => isTakenFromClass(Reflect.get(prototypeOf(wrapper)!, name)));
      const handler = 'a handler of WebSocket messages or of GraphQL, which Nest takes from its class';
      refuse(wrapper, handler, 'Move the method to a provider that the handler calls.', handlers);
      const instance = wrapper.instance as object;
      if (methods.size === 0 || found.has(instance)) continue;
      found.set(instance, { instance, methods, name: nameOf(wrapper, instance) });
    }
  }
  return [...found.values()];
}

const NOTHING: ReadonlyMap<string, Declared> = new Map();

function methodsOf(wrapper: Wrapper): ReadonlyMap<string, Declared> {
  const prototype = prototypeOf(wrapper);
  return prototype === null ? NOTHING : declaredOn(prototype);
}

function nameOf({ token }: Wrapper, instance: object): string {
  const type = instance.constructor;
  if (token === type) return type.name;
  return `${type.name}(${typeof token === 'function' ? token.name : String(token)})`;
}

/** @throws PERF_ERR_DECORATOR where there is a decorated method */
function refuse(
  wrapper: Wrapper,
  what: string,
  advice: string,
  methods: Iterable<readonly [string, Declared]> = methodsOf(wrapper),
): void {
  for (const [method, { kind }] of methods) {
    const decorator = kind === 'cached' ? '@Cached()' : '@Preloaded()';
    throw new PerfError(
      'PERF_ERR_DECORATOR',
      `${decorator} on "${wrapper.name}.${method}" stands on ${what}. ${advice}`,
    );
  }
}
