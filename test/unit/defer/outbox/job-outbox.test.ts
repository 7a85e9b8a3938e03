import { describe, expect, it, vi } from 'vitest';
import type { JobQueue } from '../../../../src/index.js';
import { until } from '../../../fixtures/until.js';
import { RequestWork } from '../../../../src/defer/request-work.js';
import { answered, engineWith } from '../engine.fixture.js';

type Jobs = Parameters<JobQueue['addBulk']>[0];

function queueOf(addBulk: (jobs: Jobs) => Promise<unknown>): JobQueue & { added: string[]; sends: number } {
  const added: string[] = [];
  return {
    name: 'mail',
    added,
    sends: 0,
    async addBulk(jobs) {
      this.sends += 1;
      const answer = await addBulk(jobs);
      added.push(...jobs.map(({ name }) => name));
      return answer;
    },
  };
}

describe('jobs for the own queue of an application', () => {
  it('drop-old: the newest take the place of those that have waited longest', async () => {
    const { engine, records } = engineWith({ maxPending: 2, overflow: 'drop-old' });
    const queue = queueOf(async () => []);
    for (const name of ['a', 'b', 'c', 'd']) engine.armJob(queue, name, { name }, undefined, null)!.commit(null);
    await engine.idle();
    expect(queue.added).toEqual(['c', 'd']);
    expect(engine.stats()).toMatchObject({ accepted: 4, completed: 2, stored: 2, dropped: 2, buffered: 0 });
    expect(records.map(({ name, outcome, error }) => [name, outcome, error])).toEqual([
      ['mail/a', 'dropped', 'newer work took its place'],
      ['mail/b', 'dropped', 'newer work took its place'],
      ['mail/c', 'completed', null],
      ['mail/d', 'completed', null],
    ]);
  });

  it('drop-old: what the own request has armed first goes, when nothing older waits', async () => {
    const { engine, records } = engineWith({ maxPending: 2, overflow: 'drop-old' });
    const queue = queueOf(async () => []);
    const request = new RequestWork(new Set());
    for (const name of ['a', 'b', 'c', 'd']) request.arm(engine.armJob(queue, name, {}, undefined, null)!);
    request.ended(answered);
    await engine.idle();
    expect(queue.added).toEqual(['c', 'd']);
    expect(records.map(({ name, outcome }) => [name, outcome])).toEqual([
      ['mail/a', 'dropped'],
      ['mail/b', 'dropped'],
      ['mail/c', 'completed'],
      ['mail/d', 'completed'],
    ]);
    expect(engine.stats()).toMatchObject({ accepted: 4, stored: 2, dropped: 2 });
  });

  it('drop-old: what no room is large enough for drops nobody else', async () => {
    const { engine, records } = engineWith({ maxPendingBytes: 100, overflow: 'drop-old' });
    let answer = (): void => {};
    const queue = queueOf(() => new Promise<void>((resolve) => (answer = resolve)));
    const add = (name: string, bytes: number): void =>
      engine.armJob(queue, name, 'x'.repeat(bytes), undefined, null)?.commit(null);
    add('on its way', 10);
    await until('it to be sent', () => queue.sends === 1);
    add('waits', 10);
    add('too large', 500);
    expect(records.map(({ name, outcome }) => [name, outcome])).toEqual([['mail/too large', 'dropped']]);
    answer();
    await until('the other to be sent', () => queue.sends > 1);
    answer();
    await engine.idle();
    expect(queue.added).toEqual(['on its way', 'waits']);
  });

  it('a queue that is dead starves no other: each has its own capacity', async () => {
    const { engine } = engineWith({ maxPending: 2 });
    const away = Object.assign(new Error('away'), { code: 'ECONNREFUSED' });
    const [dead, alive] = [queueOf(() => Promise.reject(away)), queueOf(async () => [])];
    for (const name of ['a', 'b', 'c']) engine.armJob(dead, name, {}, undefined, null)?.commit(null);
    for (const name of ['d', 'e']) engine.armJob(alive, name, {}, undefined, null)!.commit(null);
    await until('the other queue to have its jobs', () => alive.added.length === 2);
    expect(engine.stats()).toMatchObject({ accepted: 5, stored: 2, dropped: 1, pending: 2 });
    await engine.drain(0);
  });

  it.each([true, false])(
    'a queue without a job that waits is let go: an application may open one for each tenant (its job can be sent: %s)',
    async (canBeSent) => {
      const { engine } = engineWith();
      const collected: string[] = [];
      const registry = new FinalizationRegistry<string>((name) => void collected.push(name));
      const addOne = (name: string): void => {
        const queue = { ...queueOf(async () => []), name };
        registry.register(queue, name);
        if (canBeSent) engine.armJob(queue, 'welcome', {}, undefined, null)!.commit(null);
        else expect(() => engine.armJob(queue, 'welcome', 7n, undefined, null)).toThrow('PERF_ERR_SERIALIZE');
      };
      for (let i = 0; i < 20; i++) addOne(`tenant ${i}`);
      await engine.idle();
      expect(engine.stats().stored).toBe(canBeSent ? 20 : 0);
      await until('most of them to be collected', () => (gc!(), collected.length > 15));
    },
  );

  it('are bounded in bytes as well, which the report names', async () => {
    const { engine, reports } = engineWith({ maxPendingBytes: 100 });
    const queue = queueOf(async () => []);
    const data = 'x'.repeat(80);
    engine.armJob(queue, 'fits', data, undefined, null)!.commit(null);
    expect(engine.armJob(queue, 'too-much', data, undefined, null)).toBe(null);
    await engine.idle();
    engine.armJob(queue, 'fits again', data, undefined, null)!.commit(null);
    await engine.idle();
    expect(queue.added).toEqual(['fits', 'fits again']);
    expect(engine.stats()).toMatchObject({ accepted: 3, stored: 2, dropped: 1 });
    expect(reports).toEqual([expect.stringContaining('100 waiting bytes leaves no room (defer.maxPendingBytes)')]);
  });

  it('a queue that cannot store them keeps the jobs: they are told, and sent again', async () => {
    const { engine, reports } = engineWith();
    let sends = 0;
    const queue = queueOf(async () => {
      sends += 1;
      if (sends === 1) throw new Error('Connection is closed.');
    });
    engine.armJob(queue, 'welcome', { id: 1 }, undefined, null)!.commit(null);
    await engine.idle();
    expect(queue.added).toEqual(['welcome']);
    expect(engine.stats()).toMatchObject({ accepted: 1, completed: 1, retried: 1, stored: 1 });
    expect(reports).toEqual([
      'jobs for queue "mail" could not be stored: Connection is closed. All is kept for 10 minutes, and sent again under the same ids.',
    ]);
  });

  it('what its queue has not taken for ten minutes is dropped, counted and reported once; what came later is still sent', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate', 'performance'] });
    try {
      const { engine, records, reports } = engineWith();
      let away = true;
      const trouble = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
      const queue = queueOf(() => (away ? Promise.reject(trouble) : Promise.resolve()));
      const add = (name: string): void => engine.armJob(queue, name, {}, undefined, null)!.commit(null);
      for (let i = 0; i < 300; i++) add('early');
      await vi.advanceTimersByTimeAsync(5 * 60_000);
      add('late');
      await vi.advanceTimersByTimeAsync(5 * 60_000 - 1_000);
      expect(engine.stats()).toMatchObject({ accepted: 301, pending: 301, dropped: 0 });
      await vi.advanceTimersByTimeAsync(30_000);
      expect(engine.stats()).toMatchObject({ accepted: 301, pending: 1, dropped: 300, failed: 0 });
      away = false;
      await vi.advanceTimersByTimeAsync(5_000);
      expect(queue.added).toEqual(['late']);
      expect(engine.stats()).toMatchObject({ pending: 0, stored: 1, dropped: 300 });
      const why = 'its queue has not taken it for 10 minutes';
      expect(records.filter(({ error }) => error === why)).toHaveLength(300);
      const dropped = `deferred work "mail/early" dropped: ${why}.`;
      expect(reports.filter((report) => report.includes('dropped'))).toEqual([dropped]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('what its client holds while Redis is away is not sent again on top of it', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const { engine } = engineWith();
      const queue = queueOf(() => new Promise(() => {}));
      engine.armJob(queue, 'welcome', { id: 1 }, undefined, null)!.commit(null);
      await vi.advanceTimersByTimeAsync(600_000);
      expect(queue.sends).toBe(1);
      expect(engine.stats()).toMatchObject({ retried: 0, pending: 1 });
      vi.useRealTimers();
      await engine.drain(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it('what is not stored at the deadline of closing is dropped by name', async () => {
    const { engine, reports } = engineWith();
    const queue = queueOf(() => new Promise(() => {}));
    engine.armJob(queue, 'welcome', { id: 1 }, undefined, null)!.commit(null);
    await engine.drain(30);
    expect(engine.stats()).toMatchObject({ accepted: 1, dropped: 1, pending: 0, buffered: 0 });
    expect(reports.join('\n')).toContain('mail/welcome');
  });

  it('a job whose response makes it unwanted gives its room back', async () => {
    const { engine } = engineWith({ maxPending: 1, overflow: 'reject' });
    const queue = queueOf(async () => []);
    engine.armJob(queue, 'a', {}, undefined, null)!.discard();
    engine.armJob(queue, 'b', {}, undefined, null)!.commit(null);
    await engine.idle();
    expect(queue.added).toEqual(['b']);
  });
});
