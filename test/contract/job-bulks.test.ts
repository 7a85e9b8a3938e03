import { randomUUID } from 'node:crypto';
import { Queue } from 'bullmq';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { startRedis } from '../../scripts/redis.mjs';
import { JobBulks, type ArmedJob } from '../../src/defer/outbox/job-bulks.js';
import * as serialize from '../../src/defer/outbox/serialize.js';

const server = await startRedis({ own: true });
afterAll(() => server.stop());

describe('bulks of the user’s own jobs', () => {
  let queue: Queue;
  let bulks: JobBulks;
  beforeEach(() => {
    queue = new Queue(`bulks-${randomUUID()}`, { connection: { host: '127.0.0.1', port: server.port } });
    bulks = new JobBulks(queue);
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await queue.close();
  });
  const armed = (id: string, data: unknown, opts: object = {}): ArmedJob => ({
    name: 'order',
    data,
    json: serialize.toJson(data, 'a job'),
    opts: { jobId: id, ...opts },
  });
  const stored = async (id: string): Promise<unknown> => (await queue.getJob(id))?.data as unknown;

  it('store what was armed, whatever has become of the object since, and only of that one', async () => {
    await bulks.add([armed('first', { total: 1 })]);
    const kept = armed('kept', { total: 2, at: new Date(0), none: undefined });
    const changed = { total: 3, items: ['a'] as unknown[] };
    const jobs = [kept, armed('changed', changed), armed('nothing', undefined), armed('text', 'é "quoted"')];
    changed.total = 99;
    changed.items.push('b');
    await bulks.add(jobs);
    expect(await Promise.all(['first', 'kept', 'changed', 'text'].map(stored))).toEqual([
      { total: 1 },
      { total: 2, at: '1970-01-01T00:00:00.000Z' },
      { total: 3, items: ['a'] },
      'é "quoted"',
    ]);
    expect(await stored('nothing')).toEqual({});
    expect(await queue.getJobCountByTypes('wait')).toBe(5);
  });

  it('store what was armed of an object that can no longer be serialised', async () => {
    await bulks.add([armed('first', {})]);
    const circular: Record<string, unknown> = { id: 1 };
    const job = armed('circular', circular);
    circular['self'] = circular;
    await bulks.add([job, armed('beside', { id: 2 })]);
    expect(await Promise.all(['circular', 'beside'].map(stored))).toEqual([{ id: 1 }, { id: 2 }]);
  });

  it('make no copies of objects that have not changed, once a first bulk has shown that their text is compared', async () => {
    const copied = vi.spyOn(JSON, 'parse');
    await bulks.add([armed('a', { id: 1 }), armed('b', { id: 2 })]);
    const first = copied.mock.calls.length;
    await bulks.add([armed('c', { id: 3 }), armed('d', { id: 4 })]);
    expect([first, copied.mock.calls.length - first]).toEqual([2, 0]);
    copied.mockRestore();
    expect(await queue.getJobCountByTypes('wait')).toBe(4);
  });

  it('copy for a queue that does not let its text be compared', async () => {
    const seen: unknown[] = [];
    const other = new JobBulks({
      name: 'other',
      addBulk: async (jobs) => void seen.push(...jobs.map(({ data }) => data)),
    });
    for (const id of ['a', 'b']) {
      const data = { id };
      const job = armed(id, data);
      data.id = 'changed';
      await other.add([job]);
    }
    expect(seen).toEqual([{ id: 'a' }, { id: 'b' }]);
  });
});
