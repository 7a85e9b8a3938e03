import type { BlockRecord, PerfRecord, RequestRecord } from '../core/record.js';
import type { PerfSink } from '../core/sink.js';
import { settleAll } from '../core/settle-all.js';

/** A sink that calls `listener` with each request that took longer than the `slowMs` of its route, once it has ended. */
export const onSlow = (listener: (request: RequestRecord) => unknown): PerfSink =>
  hook('onSlow', 'slow', listener, (record) => (record.kind === 'request' && record.slow === true ? record : null));

/** A sink that calls `listener` with each event-loop block, once its cause is known. */
export const onBlock = (listener: (block: BlockRecord) => unknown): PerfSink =>
  hook('onBlock', 'none', listener, (record) => (record.kind === 'block' ? record : null));

function hook<T>(
  name: string,
  requests: 'slow' | 'none',
  listener: (record: T) => unknown,
  pick: (record: PerfRecord) => T | null,
): PerfSink {
  return {
    name,
    requests,
    async publish(records) {
      const picked = records.map(pick).filter((record) => record !== null);
      // The listener is called for each record, also when one call fails; the recorder reports the first failure.
      const failures = await settleAll(picked.map(async (record) => listener(record)));
      if (failures.length > 0) throw failures[0];
    },
  };
}
