import { describe, expect, it } from 'vitest';
import type { PerfRecord, PerfSink } from '../../../src/index.js';
import type { Recorder } from '../../../src/core/recorder.js';
import { recorderOf } from '../../fixtures/recorder.js';
import { OncePerCause } from '../../../src/core/reporter.js';
import {
  blockRecord,
  deferredRecord,
  requestRecord,
  resourceRecord,
  resourceSample,
  verdictRecord,
} from '../../fixtures/records.js';
import { FakeHost } from '../../fixtures/sink-host.js';

/** What a sink's test gives to {@link sinkContract}. */
export interface SinkUnderTest {
  sink: PerfSink;
  /** How many of the published requests have arrived at the other end: a server, an exporter, an array. */
  requestsArrived: (host: FakeHost) => number | Promise<number>;
  /** The other end asks, and cannot any more once the sink is closed. */
  pulled?: true;
  /** It looks at slow requests only: every completed one is. */
  slow?: true;
  /** Makes the other end hang from now on; absent where there is no other end. */
  hang?: () => void;
  dispose?: () => void | Promise<void>;
}

interface UnderTest extends SinkUnderTest {
  recorder: Recorder;
  /** Does what an application does with a record: counts it, and gives it to the recorder. */
  push: (record: PerfRecord) => void;
  arrived: () => Promise<number>;
  /** What the recorder and the sink have warned of. */
  complaints: () => string[];
}

/** For what ends by itself, long before. */
const DEADLINE_MS = 20_000;

const everyKind = (): PerfRecord[] => {
  const sample = resourceSample();
  return [
    requestRecord(),
    requestRecord({ route: '', handler: null, status: 404 }),
    requestRecord({ outcome: 'aborted', status: 499, durationMs: 0 }),
    requestRecord({
      variants: { fast_json: 'on' },
      unit: { userId: 'u'.repeat(500), customIds: { company: 'c'.repeat(5_000) } },
      note: { rows: 3, bytes: 4_000 },
      route: `/${'long/'.repeat(200)}`,
    }),
    blockRecord(),
    blockRecord({ request: null, location: null, cause: 'gc', delayed: [blockRecord().request!] }),
    resourceRecord(),
    resourceRecord({
      cpu: { ...sample.cpu, usageSeconds: null, periods: null, throttledPeriods: null, window: null },
      memory: { ...sample.memory, workingSetBytes: null },
      limits: { ...sample.limits, cpuCores: null, memoryBytes: null },
    }),
    deferredRecord(),
    deferredRecord({ outcome: 'timeout', requestId: null, error: 'took too long' }),
    verdictRecord(),
  ];
};

/** The record, as the sink wants it. */
const recordFor = ({ slow }: SinkUnderTest, record: PerfRecord): PerfRecord =>
  slow === true && record.kind === 'request' && record.outcome === 'completed'
    ? Object.freeze({ ...record, slow })
    : record;

const requestsOf = (records: readonly PerfRecord[]): number =>
  records.filter((record) => record.kind === 'request' && record.outcome === 'completed').length;

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(deepFreeze);
  }
  return value;
}

const throwing: PerfSink = {
  name: 'throwing',
  publish: () => {
    throw new Error('broken');
  },
  flush: () => Promise.reject(new Error('broken')),
  close: () => Promise.reject(new Error('broken')),
};
const hanging: PerfSink = { name: 'hanging', publish: () => new Promise<void>(() => {}) };

/** What every sink must do, checked through the real Recorder. */
export function sinkContract(name: string, make: () => SinkUnderTest | Promise<SinkUnderTest>): void {
  describe(`sink contract: ${name}`, () => {
    const withSink = async (
      others: readonly PerfSink[],
      test: (context: UnderTest) => Promise<void>,
    ): Promise<void> => {
      const made = await make();
      const warnings: string[] = [];
      const reporter = { log: () => {}, warn: (text: string) => void warnings.push(text), error: () => {} };
      const recorder = recorderOf([...others, made.sink], new OncePerCause(reporter, () => performance.now()));
      const host = new FakeHost();
      try {
        await recorder.start(() => host, DEADLINE_MS);
        await test({
          ...made,
          recorder,
          complaints: () => [...warnings, ...host.reports],
          arrived: async () => made.requestsArrived(host),
          push(record) {
            if (record.kind === 'request') host.count(record);
            recorder.push(recordFor(made, record));
          },
        });
        await recorder.close(50);
      } finally {
        await made.dispose?.();
      }
    };

    it('has a name', async () => {
      const { sink, dispose } = await make();
      expect(sink.name).toMatch(/^[a-z][\w-]*$/);
      await dispose?.();
    });

    it('takes every kind of record, in any batch, and delivers the requests', () =>
      withSink([], async ({ recorder, arrived, push, complaints }) => {
        const records = everyKind();
        for (const record of records) {
          push(record);
          await recorder.flush(DEADLINE_MS);
        }
        for (const record of records) push(record);
        await recorder.flush(DEADLINE_MS);
        expect(await arrived()).toBe(2 * requestsOf(records));
        expect(complaints()).toEqual([]);
      }));

    it('takes an empty batch', () =>
      withSink([], async ({ sink }) => {
        await sink.publish([]);
      }));

    it('takes thousands of records at once', () =>
      withSink([], async ({ recorder, arrived, push, complaints }) => {
        for (let i = 0; i < 3_000; i++) push(requestRecord({ id: `r-${i}` }));
        await recorder.flush(DEADLINE_MS);
        expect(await arrived()).toBe(3_000);
        expect(complaints()).toEqual([]);
      }));

    it('changes no record', () =>
      withSink([], async ({ recorder, arrived, push, complaints }) => {
        const records = deepFreeze(everyKind());
        for (const record of records) push(record);
        await recorder.flush(DEADLINE_MS);
        expect(await arrived()).toBe(requestsOf(records));
        expect(complaints()).toEqual([]);
      }));

    it('runs no code of its own in the turn in which a record is pushed', async () => {
      const made = await make();
      const calls: PropertyKey[] = [];
      const watched = new Proxy(made.sink, {
        get(sink, key) {
          calls.push(key);
          const value: unknown = Reflect.get(sink, key);
          return typeof value === 'function' ? value.bind(sink) : value;
        },
      });
      const recorder = recorderOf([watched], new OncePerCause(console, () => performance.now()));
      await recorder.start(() => new FakeHost(), DEADLINE_MS);
      calls.length = 0;
      for (let i = 0; i < 1_000; i++) recorder.push(requestRecord());
      expect(calls).toEqual([]);
      await recorder.close(DEADLINE_MS);
      expect(calls).toContain('publish');
      await made.dispose?.();
    });

    it('delivers beside a sink that throws and one that hangs', () =>
      withSink([throwing, hanging], async ({ recorder, arrived, push }) => {
        for (let i = 0; i < 20; i++) push(requestRecord());
        // The one that hangs uses all of it.
        await recorder.flush(100);
        await expect.poll(arrived).toBe(20);
      }));

    it('delivers what is held back when it is closed', () =>
      withSink([], async ({ recorder, arrived, push, complaints, pulled }) => {
        for (let i = 0; i < 7; i++) push(requestRecord());
        await recorder.close(DEADLINE_MS);
        if (pulled !== true) expect(await arrived()).toBe(7);
        expect(complaints()).toEqual([]);
      }));

    it('may be closed twice, without having been started or after it', async () => {
      const unstarted = await make();
      await unstarted.sink.close?.();
      await unstarted.sink.close?.();
      await unstarted.dispose?.();
      await withSink([], async ({ sink }) => {
        await sink.close?.();
        await sink.close?.();
      });
    });

    it('works again in the next application after it was closed', async () => {
      const made = await make();
      try {
        const host = new FakeHost();
        for (let application = 1; application <= 2; application++) {
          const recorder = recorderOf([made.sink], new OncePerCause(console, () => performance.now()));
          await recorder.start(() => host, DEADLINE_MS);
          host.count(requestRecord());
          recorder.push(recordFor(made, requestRecord()));
          await recorder.flush(DEADLINE_MS);
          expect(await made.requestsArrived(host)).toBe(application);
          await recorder.close(DEADLINE_MS);
        }
      } finally {
        await made.dispose?.();
      }
    });

    it('flushes and closes within the deadline when the other end hangs', () =>
      withSink([], async ({ recorder, push, hang }) => {
        hang?.();
        for (let i = 0; i < 1_200; i++) push(requestRecord());
        const startedMs = performance.now();
        await recorder.close(250);
        expect(performance.now() - startedMs).toBeLessThan(5_000);
      }));
  });
}
