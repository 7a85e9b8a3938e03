import { Inject } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { PerfError } from '../core/perf.error.js';
import { askedInVain } from '../http/dependencies.js';
import { offerService } from '../http/extension.js';
import type { Feature } from '../http/feature.js';
import type { GuardedUpstream } from './guarded-upstream.js';

const PREFIX = 'perf:upstream:';

/** What `@Upstream(name)` injects: for `inject: [upstreamToken('github')]` of a factory, and to replace it in a test. */
export function upstreamToken(name: string): string {
  const token = `${PREFIX}${name}`;
  const upstream = /^\w+$/.test(name) ? name : `'${name}'`;
  offerService({
    token,
    of: (guard) => (guard as Feature & { of(name: string): GuardedUpstream | undefined }).of(name),
    needed: {
      name: 'guard',
      decorator: `@Upstream('${name}')`,
      add: `extensions: [guard({ upstreams: { ${upstream}: { deadlineMs: 2_000 } } })]`,
    },
  });
  return token;
}

/**
 * Injects the `GuardedUpstream` of that name of `guard({ upstreams })`, into a constructor's parameter or a property. A name that is
 * not there stops the boot with `PERF_ERR_DECORATOR`, the extension missing with `PERF_ERR_EXTENSION`.
 */
export const Upstream = (name: string): ParameterDecorator & PropertyDecorator => Inject(upstreamToken(name));

/** @throws PERF_ERR_DECORATOR where one asks for an upstream that is not known */
export function refuseUnknownUpstreams(modules: ModulesContainer, known: readonly string[]): void {
  const upstreams = { has: (token: unknown) => typeof token === 'string' && token.startsWith(PREFIX) };
  for (const { token, by } of askedInVain(upstreams, modules)) {
    throw new PerfError(
      'PERF_ERR_DECORATOR',
      `\`@Upstream('${String(token).slice(PREFIX.length)}')\` in "${by}" asks for an upstream that \`guard({ upstreams })\` does not have. ` +
        `It has: ${known.join(', ')}.`,
    );
  }
}
