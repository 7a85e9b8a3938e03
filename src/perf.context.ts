import type { ModulesContainer } from '@nestjs/core';

/** Nest's metadata keys: parameter types from the compiler, `@Inject()` on parameters, `@Inject()` on properties. */
const PARAMETER_TYPES = 'design:paramtypes';
const DECLARED_PARAMETERS = 'self:paramtypes';
const DECLARED_PROPERTIES = 'self:properties_metadata';

/**
 * Whether a provider or controller outside `own` asks for one of `tokens` in its constructor, its properties or its
 * factory's `inject` list. Read once at boot, for `context: 'auto'`.
 */
export function isAskedFor(tokens: ReadonlySet<unknown>, modules: ModulesContainer, own: unknown): boolean {
  for (const module of modules.values()) {
    if (module.metatype === own) continue;
    const wrappers = [...module.providers.values(), ...module.controllers.values(), ...module.injectables.values()];
    for (const { metatype, inject } of wrappers) {
      if (inject?.some((dependency) => tokens.has(tokenOf(dependency)))) return true;
      if (
        typeof metatype === 'function' &&
        inject === undefined &&
        dependenciesOf(metatype).some((token) => tokens.has(token))
      ) {
        return true;
      }
    }
  }
  return false;
}

function dependenciesOf(metatype: object): unknown[] {
  const types = (Reflect.getMetadata(PARAMETER_TYPES, metatype) ?? []) as unknown[];
  const declared = (Reflect.getMetadata(DECLARED_PARAMETERS, metatype) ?? []) as { param: unknown }[];
  const properties = (Reflect.getMetadata(DECLARED_PROPERTIES, metatype) ?? []) as { type: unknown }[];
  return [...types, ...declared.map(({ param }) => forwarded(param)), ...properties.map(({ type }) => forwarded(type))];
}

/** `inject: [Token]` or `inject: [{ token, optional }]`. */
function tokenOf(dependency: unknown): unknown {
  const given = dependency as { token?: unknown } | null;
  return typeof given === 'object' && given !== null && 'token' in given ? given.token : forwarded(dependency);
}

function forwarded(dependency: unknown): unknown {
  const given = dependency as { forwardRef?: () => unknown } | null | undefined;
  return typeof given?.forwardRef === 'function' ? given.forwardRef() : dependency;
}
