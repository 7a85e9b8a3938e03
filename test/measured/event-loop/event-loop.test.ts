import { AsyncLocalStorage } from 'node:async_hooks';
import { runInThisContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { monotonicMs } from '../../../src/core/clock.js';
import type { BlockRecord, PerfRecord } from '../../../src/core/record.js';
import { OncePerCause } from '../../../src/core/reporter.js';
import { requestContext, RequestState } from '../../../src/request/request-state.js';
import { EventLoop } from '../../../src/event-loop/event-loop.js';
import { until } from '../../fixtures/until.js';

const THRESHOLD_MS = 50;
const spin = (ms: number): void => {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
};

/** Until the returned function is called, threads that start have other text in their program. */
function inThread(text: string, other: string): () => void {
  const { toString } = Function.prototype;
  // eslint-disable-next-line no-extend-native
  Function.prototype.toString = function (this: () => unknown): string {
    return toString.call(this).replaceAll(text, other);
  };
  // eslint-disable-next-line no-extend-native
  return () => void (Function.prototype.toString = toString);
}

describe('the event loop', () => {
  const context = new AsyncLocalStorage<string>();
  const told: string[] = [];
  const inFlight = new Set<RequestState>();
  let records: { record: BlockRecord; context: string | undefined }[];
  let loop: EventLoop;
  let owner: object;
  beforeEach(() => {
    [records, told.length] = [[], 0];
    const report = new OncePerCause({ log() {}, error() {}, warn: (message) => void told.push(message) }, monotonicMs);
    const recorder = {
      push: (record: PerfRecord) => records.push({ record: record as BlockRecord, context: context.getStore() }),
    };
    const lifecycle = { inFlight: 0, states: () => [...inFlight] };
    owner = lifecycle;
    const options = {
      thresholdMs: THRESHOLD_MS,
      stack: true,
      replay: null,
      profile: false,
      liveness: null,
    };
    const logger = { log() {}, warn() {}, error() {} };
    loop = new EventLoop(options, { requests: lifecycle, recorder, report, logger } as never);
    loop.install({ adapter: null, modules: new Map() } as never);
    loop.start();
  });
  afterEach(async () => {
    inFlight.clear();
    await loop.drain();
  });
  const begin = (findRoute = (): null => null): RequestState => {
    const members = {
      deferrer: null,
      experiments: null,
      sharedAnswers: null,
      nextId: () => 'id',
      findRoute,
    };
    const state = new RequestState(null, null, monotonicMs(), Object.assign(owner, members));
    inFlight.add(state);
    loop.started(state);
    return state;
  };
  const end = (state: RequestState): void => {
    state.endedMs = monotonicMs();
    inFlight.delete(state);
    loop.ended(state);
  };

  it('records blocks outside the context of every request', async () => {
    await context.run('a request', async () => {
      const state = begin();
      spin(THRESHOLD_MS + 20);
      end(state);
      await loop.idle();
    });
    // More than one where the machine stood still as well.
    expect(new Set(records.map((one) => one.context))).toEqual(new Set([undefined]));
  });

  it('does not take the boot of the application for a block', async () => {
    spin(THRESHOLD_MS + 20);
    end(begin());
    await loop.idle();
    expect(records).toEqual([]);
  });

  it('survives what an application has put on a request: its block is left out, and that is reported', async () => {
    const fails = (): never => {
      throw new Error('on purpose');
    };
    // A busy machine may keep the sampler from a sample; no machine keeps it from it each time.
    await until('the report', async () => {
      const state = begin(fails);
      requestContext.run(state, () => spin(THRESHOLD_MS * 4));
      end(state);
      await loop.idle();
      return told.some((message) => message.startsWith('an event-loop block could not be recorded (Error)'));
    });
    for (const message of told) expect(message).not.toContain('on purpose');
  });

  it('waits for lines that its thread is still reading', async () => {
    const compiledSpin = runInThisContext(`(${spin.toString()})`, { filename: '/srv/dist/render.js' }) as typeof spin;
    // As long as it takes to read the map of a bundle on a busy machine.
    const restore = inThread(
      'positions.map(locate)',
      "positions.map((_, i) => (i > 0 || Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500), 'src/render.ts:4:2'))",
    );
    begin();
    restore();
    await until('a block with its line', async () => {
      const state = begin();
      requestContext.run(state, () => compiledSpin(THRESHOLD_MS * 4));
      end(state);
      await loop.idle();
      return records.some(({ record }) => record.location === 'src/render.ts:4:2');
    });
    const located = records.filter(({ record }) => record.stack.length > 0);
    expect(new Set(located.map(({ record }) => record.location))).toEqual(new Set(['src/render.ts:4:2']));
  });

  it('records nothing any more when it is closed', async () => {
    end(begin());
    await loop.drain();
    const state = begin();
    spin(THRESHOLD_MS + 20);
    end(state);
    await loop.idle();
    expect(records).toEqual([]);
  });
});
