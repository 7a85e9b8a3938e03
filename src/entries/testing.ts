import type { INestApplicationContext } from '@nestjs/common';
import type { PerfRecord } from '../core/record.js';
import type { PerfSink } from '../core/sink.js';
import { PerfRuntime } from '../perf.runtime.js';
import { sinksOption, type SinkOption } from '../perf.sinks.js';
import { PERF_SINKS } from '../perf.tokens.js';

/** A sink that keeps what it is given. */
export interface MemorySink extends PerfSink {
  readonly records: PerfRecord[];
}

/** Keeps every record in `records`, for assertions. Unbounded: for tests only. */
export function memorySink(): MemorySink {
  const records: PerfRecord[] = [];
  return {
    name: 'memory',
    records,
    publish(batch) {
      for (const record of batch) records.push(record);
    },
  };
}

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

/**
 * Resolves when no request whose response has been ended still awaits its `close`, its deferred work is done, its blocks
 * are classified, and sinks are flushed. Open streams are not waited for.
 */
export async function settle(app: INestApplicationContext): Promise<void> {
  await app.get(PerfRuntime, { strict: false }).settle();
}

export { expectWork } from './testing/expect-work.js';
export type { WorkAnswer, WorkRequest } from './testing/send.js';
export type { Allowed, ExpectedWork, SeenWork } from './testing/work-table.js';
