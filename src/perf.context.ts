import type { ModulesContainer } from '@nestjs/core';
import { dependenciesOf } from './http/dependencies.js';
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
  const isAsked = (): boolean =>
    wrappersOf(modules).some((made) => dependenciesOf(made).some(({ token }) => NEEDS_CONTEXT.has(token)));
  return (cheap && wanted) || isAsked();
}
