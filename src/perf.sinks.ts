import type { InjectionToken, Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import { list, optionError, value } from './core/option.js';
import { PerfError } from './core/perf.error.js';
import type { PerfSink } from './core/sink.js';

/** A sink, or the class or injection token of the provider that is one. */
export type SinkOption = PerfSink | Type<PerfSink> | InjectionToken;

const EXPECTED = 'a sink (an object with a `name` and a `publish()` method), or the class or injection token of one';

const isSink = (given: unknown): given is PerfSink => {
  const candidate = given as Partial<PerfSink> | null | undefined;
  return (
    typeof candidate === 'object' && typeof candidate?.name === 'string' && typeof candidate.publish === 'function'
  );
};
const isToken = (given: unknown): given is Exclude<SinkOption, PerfSink> =>
  typeof given === 'function' || typeof given === 'symbol' || (typeof given === 'string' && given !== '');

const entry = value<SinkOption>(EXPECTED, (given) => isSink(given) || isToken(given));
export const sinksOption = list(entry, { default: [], what: 'a list of sinks' });

/**
 * Finds the sinks that are providers, once Nest has made every provider.
 * @throws PERF_ERR_OPTION for a class or token that is no provider of the application, or one that is no sink
 */
export function resolveSinks(sinks: readonly SinkOption[], application: ModuleRef): PerfSink[] {
  return sinks.map((given, index) => (isSink(given) ? given : provided(given, `sinks[${index}]`, application)));
}

function provided(token: Exclude<SinkOption, PerfSink>, path: string, application: ModuleRef): PerfSink {
  const name = typeof token === 'function' ? `\`${token.name}\`` : `\`${String(token)}\``;
  let found: unknown;
  try {
    found = application.get<unknown>(token, { strict: false });
  } catch (cause) {
    throw new PerfError(
      'PERF_ERR_OPTION',
      `\`${path}\` is ${name}, but no module of this application provides it once for all requests. ` +
        'Add it to the `providers` of a module, without a request scope; a function that makes a sink must be called.',
      { cause },
    );
  }
  if (!isSink(found)) throw optionError(path, EXPECTED, found, `It is what ${name} provides.`);
  return found;
}
