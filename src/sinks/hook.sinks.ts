import type { BlockRecord, PerfRecord, RequestRecord } from '../core/record.js';
import type { PerfSink } from '../core/sink.js';
import { settleAll } from '../core/settle-all.js';

/** A sink that calls `hear` with each request that took longer than the `slowMs` of its route, once it has ended. */
export const onSlow = (hear: (request: RequestRecord) => unknown): PerfSink =>
  hook('onSlow', 'slow', hear, (record) => (record.kind === 'request' && record.slow === true ? record : null));

/** A sink that calls `hear` with each event-loop block, once its cause is known. */
export const onBlock = (hear: (block: BlockRecord) => unknown): PerfSink =>
  hook('onBlock', 'none', hear, (record) => (record.kind === 'block' ? record : null));

function hook<T>(
  name: string,
  requests: 'slow' | 'none',
  hear: (record: T) => unknown,
  pick: (record: PerfRecord) => T | null,
): PerfSink {
  return {
    name,
    requests,
    async publish(records) {
      const heard = records.map(pick).filter((picked) => picked !== null);
      // All are told, also when one of them fails; the recorder reports the first failure.
      const failures = await settleAll(heard.map(async (picked) => hear(picked)));
      if (failures.length > 0) throw failures[0];
    },
  };
}
