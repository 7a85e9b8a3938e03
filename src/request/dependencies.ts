import type { InjectionToken } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import {
  OPTIONAL_DEPS_METADATA,
  OPTIONAL_PROPERTY_DEPS_METADATA,
  PARAMTYPES_METADATA,
  PROPERTY_DEPS_METADATA,
  SELF_DECLARED_DEPS_METADATA,
} from './nest-metadata.js';
import { wrappersOf } from './prototypes.js';

type Wrapper = ReturnType<typeof wrappersOf>[number];
export interface Dependency {
  readonly token: unknown;
  readonly optional: boolean;
}

/** Finds classes that inject one of `tokens` though no module and no test provides it. */
export function askedInVain(
  tokens: { has(token: InjectionToken): boolean },
  modules: ModulesContainer,
): { token: InjectionToken; by: string }[] {
  const wrappers = wrappersOf(modules);
  const isGiven = (token: InjectionToken): boolean =>
    wrappers.some((made) => made.token === token && made.instance !== undefined && made.instance !== null);
  return wrappers.flatMap((made) =>
    dependenciesOf(made)
      .filter(({ token, optional }) => !optional && tokens.has(token as InjectionToken))
      .map(({ token }) => ({ token: token as InjectionToken, by: String(made.name) }))
      .filter(({ token }) => !isGiven(token)),
  );
}

/** Lists the dependencies of a constructor and its properties, or of a factory's `inject` list. */
export function dependenciesOf({ metatype, inject }: Wrapper): Dependency[] {
  if (inject !== undefined && inject !== null) return inject.map(ofFactory);
  return typeof metatype === 'function' ? ofClass(metatype) : [];
}

function ofClass(metatype: object): Dependency[] {
  const read = (key: string): unknown => Reflect.getMetadata(key, metatype) ?? [];
  const tokens = [...(read(PARAMTYPES_METADATA) as unknown[])];
  for (const { index, param } of read(SELF_DECLARED_DEPS_METADATA) as { index: number; param: unknown }[]) {
    tokens[index] = param;
  }
  const optional = read(OPTIONAL_DEPS_METADATA) as number[];
  const properties = read(PROPERTY_DEPS_METADATA) as { key: string; type: unknown }[];
  const optionalKeys = read(OPTIONAL_PROPERTY_DEPS_METADATA) as string[];
  return [
    // Without types of the compiler some have none.
    ...Array.from(tokens, (token, index) => ({ token: forwarded(token), optional: optional.includes(index) })),
    ...properties.map(({ key, type }) => ({ token: forwarded(type), optional: optionalKeys.includes(key) })),
  ];
}

/** `inject: [Token]` or `inject: [{ token, optional }]`. */
function ofFactory(dependency: unknown): Dependency {
  const given = dependency as Partial<Dependency> | null;
  const isObject = typeof given === 'object' && given !== null && 'token' in given;
  return isObject
    ? { token: given.token, optional: given.optional === true }
    : { token: forwarded(dependency), optional: false };
}

function forwarded(token: unknown): unknown {
  const given = token as { forwardRef?: () => unknown } | null | undefined;
  return typeof given?.forwardRef === 'function' ? given.forwardRef() : token;
}
