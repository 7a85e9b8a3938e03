import { once, EventEmitter } from 'node:events';
import { describe, expect, it, vi } from 'vitest';
import type { PerfRecord, PerfSink } from '../../../src/index.js';
import { recorderOf } from '../../fixtures/recorder.js';
import { requestRecord } from '../../fixtures/records.js';
import { FakeHost } from '../../fixtures/sink-host.js';
import { OncePerCause } from '../../../src/core/reporter.js';

const record = (durationMs = 1): PerfRecord => requestRecord({ durationMs });

async function recording(sinks: PerfSink[]) {
  const messages: string[] = [];
  const say = (message: string) => void messages.push(message);
  const recorder = recorderOf(sinks, new OncePerCause({ log: say, warn: say, error: say }, () => performance.now()));
  await recorder.start(() => new FakeHost(), 1_000);
  return { recorder, messages };
}

function counting(): PerfSink & { received: number } {
  return {
    name: 'counting',
    received: 0,
    publish(batch) {
      this.received += batch.length;
    },
  };
}

const failing: [string, PerfSink][] = [
  [
    'throws',
    {
      name: 'bad',
      publish: () => {
        throw new Error('no disk');
      },
    },
  ],
  ['rejects', { name: 'bad', publish: () => Promise.reject(new Error('no disk')) }],
  ['rejects with nothing', { name: 'bad', publish: () => Promise.reject() }],
  ['hangs', { name: 'bad', publish: () => new Promise(() => {}) }],
  [
    'throws in flush',
    {
      name: 'bad',
      publish: () => {},
      flush: () => {
        throw new Error('no flush');
      },
    },
  ],
  ['hangs in close', { name: 'bad', publish: () => {}, close: () => new Promise(() => {}) }],
];

describe('a sink that fails', () => {
  it.each(failing)('and %s harms no other sink, and is reported once per cause', async (_what, bad) => {
    const good = counting();
    const { recorder, messages } = await recording([bad, good]);
    for (let i = 0; i < 1_200; i++) recorder.push(record());
    await recorder.flush(50);
    for (let i = 0; i < 1_200; i++) recorder.push(record());
    await recorder.close(50);
    expect(good.received).toBe(2_400);
    const causes = messages.filter((message) => message.includes('sink "bad"'));
    expect(causes.length).toBeGreaterThan(0);
    expect(causes.filter((message) => !message.includes('more since')).length).toBeLessThanOrEqual(4);
  });

  it('and empties its batches takes nothing from another sink or from its own bound', async () => {
    let received = 0;
    const emptying: PerfSink = {
      name: 'emptying',
      publish(batch) {
        received += (batch as PerfRecord[]).splice(0).length;
      },
    };
    const good = counting();
    const { recorder, messages } = await recording([emptying, good]);
    for (let i = 0; i < 3; i++) {
      for (let j = 0; j < 4_000; j++) recorder.push(record());
      await recorder.flush(1_000);
    }
    await recorder.close(1_000);
    expect([received, good.received, messages]).toEqual([12_000, 12_000, []]);
  });

  it('takes no time from another one that closes slowly', async () => {
    let closed = false;
    const slow: PerfSink = {
      name: 'slow',
      publish: () => {},
      close: async () => {
        await new Promise((resolve) => setTimeout(resolve, 200));
        closed = true;
      },
    };
    const { recorder, messages } = await recording([{ name: 'hung', publish: () => new Promise(() => {}) }, slow]);
    recorder.push(record());
    await recorder.close(1_000);
    expect(closed).toBe(true);
    expect(messages.filter((message) => message.includes('sink "slow"'))).toEqual([]);
  });

  it('says how many records a hung sink has cost', async () => {
    const hung: PerfSink = { name: 'hung', publish: () => new Promise(() => {}) };
    const { recorder, messages } = await recording([hung]);
    for (let turn = 0; turn < 40; turn++) {
      for (let i = 0; i < 1_000; i++) recorder.push(record());
      await new Promise((resolve) => setImmediate(resolve));
    }
    await recorder.close(20);
    expect(messages.join('\n')).toMatch(/sink "hung" lost records: \d+ now, \d+ in all/);
  });

  it('counts each record that a hung sink has cost once', async () => {
    const { recorder, messages } = await recording([{ name: 'hung', publish: () => new Promise(() => {}) }]);
    for (const last of [false, true]) {
      for (let i = 0; i < 10; i++) recorder.push(record());
      await (last ? recorder.close(20) : recorder.flush(20));
    }
    expect(messages.filter((message) => message.includes('lost records'))).toEqual([
      'sink "hung" lost records: 10 now, 10 in all, because it was slow, hung or failed.',
      'sink "hung" lost records: 10 more since it was last reported.',
    ]);
  });
});

/** Held, they would be more than 100 MB. */
const RECORDS = process.env['PERF_LONG'] === undefined ? 600_000 : 3_000_000;

describe('the recorder', () => {
  it('keeps the heap flat while hundreds of thousands of records are pushed at a sink that hangs, and counts what it drops', async () => {
    const hung: PerfSink = { name: 'hung', publish: () => new Promise(() => {}) };
    const { recorder, messages } = await recording([hung]);
    const collect = (globalThis as { gc?: () => void }).gc ?? (() => {});
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < RECORDS; i++) {
      recorder.push(record(i));
      if (i % 20_000 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    collect();
    const grownMb = (process.memoryUsage().heapUsed - before) / 1e6;
    // 10,000 records are held.
    expect(grownMb).toBeLessThan(60);
    await recorder.close(20);
    expect(messages.join('\n')).toMatch(/sink "hung" lost records/);
  }, 120_000);

  it('delivers in order, in batches, in a later turn', async () => {
    const events = new EventEmitter();
    const batches: number[][] = [];
    const sink: PerfSink = {
      name: 'ordered',
      publish(batch) {
        batches.push(batch.map((r) => (r.kind === 'request' ? r.durationMs : -1)));
        events.emit('batch');
      },
    };
    const { recorder } = await recording([sink]);
    for (let i = 0; i < 500; i++) recorder.push(record(i));
    expect(batches).toEqual([]);
    await once(events, 'batch');
    expect(batches.flat()).toEqual(Array.from({ length: 500 }, (_, i) => i));
    await recorder.close(50);
  });

  it('flushes and closes each sink once, and drops what comes later', async () => {
    const calls: string[] = [];
    const sink: PerfSink = {
      name: 'closing',
      publish: (batch) => void calls.push(`publish ${batch.length}`),
      flush: async () => void calls.push('flush'),
      close: async () => void calls.push('close'),
    };
    const { recorder } = await recording([sink]);
    recorder.push(record());
    await Promise.all([recorder.close(50), recorder.close(50)]);
    vi.useFakeTimers();
    recorder.push(record());
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
    await recorder.flush(50);
    expect(calls).toEqual(['publish 1', 'flush', 'close']);
  });
});
