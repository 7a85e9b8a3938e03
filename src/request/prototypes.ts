import { MetadataScanner, type ModulesContainer } from '@nestjs/core';
import { PATH_METADATA } from './nest-metadata.js';

export const servesRoute = (method: object): boolean => Reflect.hasMetadata(PATH_METADATA, method);

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

/** Methods of all classes that serve no route: there a decorator for handlers would silently do nothing. */
export function listUnroutedMethods(modules: ModulesContainer): { readonly where: string; readonly method: object }[] {
  return listWrappers(modules).flatMap(({ metatype }) => {
    if (typeof metatype !== 'function') return [];
    const methods = listMethods((metatype.prototype ?? {}) as object).filter(([, method]) => !servesRoute(method));
    return methods.map(([name, method]) => ({ where: `${metatype.name}.${name}`, method }));
  });
}
