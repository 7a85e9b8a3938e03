import { Inject, Optional, type Type } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { PerfError } from '../core/perf.error.js';
import { classesOf, needExtension, offerService, type NeededExtension } from '../http/extension.js';
import type { Feature } from '../http/feature.js';
import type { GuardedUpstream } from './guarded-upstream.js';

/** On a class: the upstreams that its constructor and properties ask for. */
const UPSTREAMS_METADATA = 'perf:upstreams';

/** What `@Upstream(name)` injects: for `inject: [upstreamToken('github')]` of a factory, and to replace it in a test. */
export function upstreamToken(name: string): string {
  const token = `perf:upstream:${name}`;
  offerService({
    token,
    of: (guard) => (guard as Feature & { of(name: string): GuardedUpstream | undefined }).of(name),
    needed: neededFor(name),
  });
  return token;
}

const neededFor = (name: string): NeededExtension => ({
  name: 'guard',
  decorator: `@Upstream('${name}')`,
  add: `extensions: [guard({ upstreams: { ${/^\w+$/.test(name) ? name : `'${name}'`}: { deadlineMs: 2_000 } } })]`,
});

/**
 * Injects the `GuardedUpstream` of that name of `guard({ upstreams })`, into a constructor's parameter or a property. A name that is
 * not there stops the boot with `PERF_ERR_DECORATOR`, the extension missing with `PERF_ERR_EXTENSION`.
 */
export function Upstream(name: string): ParameterDecorator & PropertyDecorator {
  // Nest's own error would name a token: what is missing is said at boot in words.
  const decorators = [Optional(), Inject(upstreamToken(name))];
  return (target: object, key: string | symbol | undefined, index?: number) => {
    const asking = (typeof target === 'function' ? target : target.constructor) as Type;
    const names = namesOf(asking);
    Reflect.defineMetadata(UPSTREAMS_METADATA, [...names, name], asking);
    needExtension(neededFor(name), asking);
    for (const decorate of decorators)
      (decorate as (target: object, key: unknown, index?: number) => void)(target, key, index);
  };
}

const namesOf = (asking: Type): readonly string[] =>
  (Reflect.getMetadata(UPSTREAMS_METADATA, asking) as readonly string[] | undefined) ?? [];

/** @throws PERF_ERR_DECORATOR where a class asks for an upstream that is not known */
export function refuseUnknownUpstreams(modules: ModulesContainer, known: readonly string[]): void {
  for (const asking of classesOf(modules)) {
    const unknown = namesOf(asking).find((name) => !known.includes(name));
    if (unknown === undefined) continue;
    throw new PerfError(
      'PERF_ERR_DECORATOR',
      `\`@Upstream('${unknown}')\` in "${asking.name}" asks for an upstream that \`guard({ upstreams })\` does not have. ` +
        `It has: ${known.join(', ')}.`,
    );
  }
}
