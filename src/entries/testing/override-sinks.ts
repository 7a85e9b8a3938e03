import { sinksOption, type SinkOption } from '../../perf.sinks.js';
import { PERF_SINKS } from '../../perf.tokens.js';

/** The part of `@nestjs/testing`'s `TestingModuleBuilder` that is used. */
interface Overriding {
  overrideProvider(token: unknown): { useValue(value: unknown): unknown };
}

/**
 * Puts these sinks in the place of the application's, in a test that imports its `AppModule`:
 * `overridePerfSinks(Test.createTestingModule({ imports: [AppModule] }), [memorySink()])`.
 * @returns the builder
 * @throws PERF_ERR_OPTION when one of them is no sink
 */
export function overridePerfSinks<Builder extends Overriding>(builder: Builder, sinks: readonly SinkOption[]): Builder {
  builder.overrideProvider(PERF_SINKS).useValue(sinksOption.read(sinks, 'sinks'));
  return builder;
}
