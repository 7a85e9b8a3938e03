import { Inject } from '@nestjs/common';
import { PerfError } from '../core/perf.error.js';
import { needProvider, readToken, type PerfExtension } from '../request/extension.js';

const PREFIX = 'perf:upstream:';

/** The token that `@Upstream(name)` injects: for `inject: [upstreamToken('github')]` of a factory, and to replace it in a test. */
export function upstreamToken(name: string): string {
  const token = `${PREFIX}${name}`;
  const upstream = /^\w+$/.test(name) ? name : `'${name}'`;
  const decorator = `@Upstream('${name}')`;
  needProvider(token, {
    name: 'resilience',
    decorator,
    add: `extensions: [resilience({ upstreams: { ${upstream}: { deadlineMs: 2_000 } } })]`,
    createUnknownError: (where, extension) =>
      new PerfError(
        'PERF_ERR_DECORATOR',
        `\`${decorator}\` in "${where}" names an upstream that \`resilience({ upstreams })\` does not have. ` +
          `It has: ${listUpstreams(extension).join(', ')}.`,
      ),
  });
  return token;
}

const listUpstreams = ({ providers }: PerfExtension): string[] =>
  providers
    .map((provider) => String(readToken(provider)))
    .filter((token) => token.startsWith(PREFIX))
    .map((token) => token.slice(PREFIX.length));

/**
 * Injects the `ResilientUpstream` of that name in `resilience({ upstreams })`, into a constructor's parameter or a property. A name that is
 * not there stops the boot with `PERF_ERR_DECORATOR`, the extension missing with `PERF_ERR_EXTENSION`.
 */
export const Upstream = (name: string): ParameterDecorator & PropertyDecorator => Inject(upstreamToken(name));
