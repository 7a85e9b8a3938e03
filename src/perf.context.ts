import type { ModulesContainer } from '@nestjs/core';
import { PARAMTYPES_METADATA, PROPERTY_DEPS_METADATA, SELF_DECLARED_DEPS_METADATA } from './http/nest-metadata.js';
import { wrappersOf } from './http/prototypes.js';
import { FEATURES, type ResolvedOptions } from './perf.options.js';

const IN_CONTEXT = FEATURES.filter(({ observes }) => observes === 'context');
/** Services that cannot tell a request without the store: who injects one of them switches it on. */
const NEEDS_CONTEXT = new Set<unknown>(IN_CONTEXT.flatMap(({ service = [] }) => service));
/** From here on V8 keeps the async context itself: a store costs a request little. */
const FIRST_CHEAP_NODE = 24;

/** Whether requests enter the context store; for `'auto'` decided once at boot. */
export function needsContext(options: ResolvedOptions, modules: ModulesContainer): boolean {
  if (options.context !== 'auto') return options.context;
  const cheap = Number.parseInt(process.versions.node, 10) >= FIRST_CHEAP_NODE;
  const wanted = IN_CONTEXT.some(({ name }) => options[name] !== null);
  return (cheap && wanted) || isAskedFor(NEEDS_CONTEXT, modules);
}

/** Whether one asks for one of `tokens` in its constructor, its properties or its factory's `inject` list. */
function isAskedFor(tokens: ReadonlySet<unknown>, modules: ModulesContainer): boolean {
  return wrappersOf(modules).some(({ metatype, inject }) => {
    const isMade = typeof metatype === 'function' && inject === undefined;
    const asked = isMade ? dependenciesOf(metatype) : (inject ?? []).map(tokenOf);
    return asked.some((token) => tokens.has(token));
  });
}

function dependenciesOf(metatype: object): unknown[] {
  const types = (Reflect.getMetadata(PARAMTYPES_METADATA, metatype) ?? []) as unknown[];
  const declared = (Reflect.getMetadata(SELF_DECLARED_DEPS_METADATA, metatype) ?? []) as { param: unknown }[];
  const properties = (Reflect.getMetadata(PROPERTY_DEPS_METADATA, metatype) ?? []) as { type: unknown }[];
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
