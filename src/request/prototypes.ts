import { MetadataScanner, type ModulesContainer } from '@nestjs/core';

/** Nest's wrappers of all providers, controllers, guards, pipes and interceptors, made already or not. */
export const listWrappers = (modules: ModulesContainer) =>
  [...modules.values()].flatMap(({ providers, controllers, injectables }) => [
    ...providers.values(),
    ...controllers.values(),
    ...injectables.values(),
  ]);

/** Returns the prototype behind a provider of any form; null for plain objects. */
export function findPrototype(of: { readonly instance: unknown; readonly metatype: unknown }): object | null {
  const { instance, metatype } = of;
  const isMade = typeof instance === 'object' && instance !== null;
  const prototype: unknown = isMade
    ? Object.getPrototypeOf(instance)
    : (metatype as { prototype?: unknown } | null)?.prototype;
  return typeof prototype === 'object' && prototype !== Object.prototype ? prototype : null;
}

/** Lists the methods along the prototype chain, as Nest sees them: the nearest of a name wins, accessors are left out. */
export function listMethods(prototype: object): (readonly [name: string, method: object])[] {
  const names = new MetadataScanner().getAllMethodNames(prototype);
  return names.map((name) => [name, Reflect.get(prototype, name) as object]);
}
