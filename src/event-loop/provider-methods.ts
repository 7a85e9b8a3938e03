import type { ModulesContainer } from '@nestjs/core';
import { prototypeOf, wrappersOf } from '../request/prototypes.js';
import type { Frame } from './sample.js';

/** The methods of the classes that Nest makes: controllers, providers, guards, cron jobs, consumers. */
export class ProviderMethods {
  /** Made at the first block: an application that never blocks pays nothing. */
  private prototypes: ReadonlyMap<string, ReadonlySet<object>> | null = null;

  constructor(private readonly modules: ModulesContainer) {}

  /** All of them, as `'ReportsService.render'`. */
  names(): string[] {
    this.prototypes ??= prototypesByName(this.modules);
    const named = [...this.prototypes].flatMap(([type, prototypes]) =>
      [...prototypes].flatMap((prototype) => methodNames(prototype).map((name) => `${type}.${name}`)),
    );
    return [...new Set(named)];
  }

  /** The innermost method of such a class in a stack, as `'ReportsService.render'`; null when there is none. */
  findIn(frames: readonly Frame[], isApplications: (frame: Frame) => boolean): string | null {
    this.prototypes ??= prototypesByName(this.modules);
    for (const frame of frames) {
      const { name, typeName } = frame;
      if (name === null || typeName === null || typeName === undefined) continue;
      for (const prototype of this.prototypes.get(typeName) ?? []) {
        if (hasMethod(prototype, name) && isApplications(frame)) return `${typeName}.${name}`;
      }
    }
    return null;
  }
}

function prototypesByName(modules: ModulesContainer): Map<string, Set<object>> {
  const found = new Map<string, Set<object>>();
  const middlewares = [...modules.values()].flatMap((module) => [...module.middlewares.values()]);
  for (const wrapper of [...wrappersOf(modules), ...middlewares]) {
    const prototype = prototypeOf(wrapper);
    const name: unknown = prototype?.constructor.name;
    if (prototype === null || typeof name !== 'string') continue;
    found.set(name, (found.get(name) ?? new Set()).add(prototype));
  }
  return found;
}

function methodNames(prototype: object): string[] {
  const names: string[] = [];
  for (let at: object | null = prototype; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at))
    names.push(...Object.getOwnPropertyNames(at).filter((name) => hasMethod(prototype, name)));
  return names;
}

/** Along the prototype chain, without calling an accessor. */
function hasMethod(prototype: object, name: string): boolean {
  for (let at: object | null = prototype; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    const descriptor = Object.getOwnPropertyDescriptor(at, name);
    if (descriptor !== undefined) return typeof descriptor.value === 'function' && name !== 'constructor';
  }
  return false;
}
