import type { DeferredRecord } from '../../../src/core/record.js';
import type { RequestState } from '../../../src/request/request-state.js';
import { OncePerCause } from '../../../src/core/reporter.js';

import { DeferEngine } from '../../../src/defer/defer-engine.js';
import { deferOption, type DeferOptions } from '../../../src/defer/defer.options.js';
import type { DeferInfo } from '../../../src/defer/deferred-work.js';
import { TaskSequence, type Arming } from '../../../src/defer/tasks/task.js';

export const armingIn = (sequence: TaskSequence): Arming => ({ when: null, origin: null, sequence });

/** A request that was answered with 200. */
export const answered = { response: null, aborted: false, status: 200 } as RequestState;

/** An engine with its records and reports, and a short way to defer. */
export function engineWith(options: DeferOptions = {}) {
  const records: DeferredRecord[] = [];
  const reports: string[] = [];
  const say = (message: string): void => void reports.push(message);
  const report = new OncePerCause({ log: say, warn: say, error: say }, () => performance.now());
  const engine = new DeferEngine(deferOption.read(options, 'defer')!, (record) => records.push(record), report);
  const defer = (
    run: (info: DeferInfo) => unknown,
    spec: { name?: string; timeoutMs?: number; attempts?: number; sequence?: TaskSequence; backoffMs?: number } = {},
  ): void => {
    const { name = 'task', timeoutMs = 30_000, attempts = 1, sequence = new TaskSequence(), backoffMs = 200 } = spec;
    engine
      .armTask(
        { name, timeoutMs, attempts, backoffMs, maxBackoffMs: 30_000 },
        ({ info }) => run(info),
        armingIn(sequence),
      )
      ?.commit(null);
  };
  return { engine, records, reports, defer };
}
