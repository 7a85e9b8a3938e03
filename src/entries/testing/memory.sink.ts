import type { PerfRecord } from '../../core/record.js';
import type { PerfSink } from '../../core/sink.js';

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
