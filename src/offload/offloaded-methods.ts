import { types } from 'node:util';
import type { ModulesContainer } from '@nestjs/core';
import { offloadedOn } from '../core/offload-thread.js';
import { findPrototype, type listWrappers } from '../request/prototypes.js';
import { misplaced } from './offload.errors.js';
import type { ResolvedMethodOptions } from './offload.options.js';

/** A decorated method of one provider. */
export interface OffloadedMethod {
  /** `'Reports.render'`: the same on the main thread and in a worker. */
  readonly name: string;
  readonly methodName: string;
  readonly instance: object;
  readonly options: ResolvedMethodOptions;
}

type Wrapper = ReturnType<typeof listWrappers>[number];

/**
 * The decorated methods of an application's providers.
 * @throws PERF_ERR_DECORATOR for one that no worker could find
 */
export function offloadedMethods(modules: ModulesContainer): Map<string, OffloadedMethod> {
  const found = new Map<string, OffloadedMethod>();
  for (const module of modules.values()) {
    const [wrong] = [...module.controllers.values(), ...module.injectables.values()].flatMap(decoratedIn);
    if (wrong !== undefined) {
      const why = 'controllers, guards, pipes, interceptors and filters serve a request, which cannot travel.';
      throw misplaced(wrong.name, `${why} Put it on a method of a provider that it injects.`);
    }
    for (const wrapper of module.providers.values()) {
      for (const method of decoratedIn(wrapper)) {
        const { name, instance } = method;
        if (!wrapper.isDependencyTreeStatic() || wrapper.isTransient) {
          throw misplaced(name, 'the provider is request-scoped or transient, and no worker has that instance.');
        }
        if (types.isProxy(instance)) throw misplaced(name, BEHIND_PROXY);
        if ((found.get(name)?.instance ?? instance) !== instance) {
          throw misplaced(
            name,
            'two providers have this name, and a worker could not tell them apart. Rename a class.',
          );
        }
        found.set(name, method);
      }
    }
  }
  return found;
}

function decoratedIn(wrapper: Wrapper): OffloadedMethod[] {
  const prototype = findPrototype(wrapper);
  if (prototype === null) return [];
  const instance = wrapper.instance as object;
  return offloadedOn(prototype).map(([methodName, options]) => {
    const name = `${prototype.constructor.name}.${methodName}`;
    return { name, methodName, instance, options: options as ResolvedMethodOptions };
  });
}

const BEHIND_PROXY =
  'the provider is behind a `Proxy`: its methods run on another object than the one that Nest has. Leave it out of `instrument.instanceDecorator`.';

/** `here`: runs the method directly. */
export type RunMethod = (
  instance: object,
  methodName: string,
  options: ResolvedMethodOptions,
  parameters: unknown[],
  here: () => unknown,
) => Promise<unknown>;

/** By instance; a method of an instance that is not here runs directly, as in a worker or without an application. */
export const runningInstances = new WeakMap<object, { runMethod: RunMethod }>();
