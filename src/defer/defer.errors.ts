import { PerfError } from '../core/perf.error.js';

/** Deferred work is switched off. */
export function off(what: string): PerfError {
  return new PerfError(
    'PERF_ERR_OFF',
    `\`${what}\` needs deferred work, which is switched off. Remove \`defer: false\` from PerfModule.forRoot().`,
  );
}

/** Durable work without a store. */
export function noStore(what: string): PerfError {
  return new PerfError(
    'PERF_ERR_STORE',
    `${what}, but \`defer.store\` is not set. ` +
      "Pass `defer: { store: bullmqStore({ connection }) }` from 'nestjs-perf/bullmq'.",
  );
}
