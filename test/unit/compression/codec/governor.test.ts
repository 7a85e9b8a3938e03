import { describe, expect, it } from 'vitest';
import { Compressor } from '../../../../src/compression/codec/compressor.js';
import { compressionSlots, Governor, threadPoolSizeOf } from '../../../../src/compression/codec/compressor.js';

const none = { zstd: null, br: null, gzip: null };
const body = Buffer.from('flight 4711 '.repeat(5_000));

describe('the governor', () => {
  it.each([
    [4, 8, 3],
    [4, 2, 2],
    [1, 8, 1],
    [128, 16, 16],
    [2, 1, 1],
  ])('leaves a thread free: a pool of %i on %i cores runs %i', (pool, cores, slots) => {
    expect(compressionSlots(pool, cores)).toBe(slots);
  });

  it.each([
    [undefined, 4],
    ['1', 1],
    ['0', 1],
    ['16', 16],
    ['x', 1],
    ['99999', 1024],
  ])('reads UV_THREADPOOL_SIZE %s as libuv does: %i', (given, size) => {
    expect(threadPoolSizeOf(given === undefined ? {} : { UV_THREADPOOL_SIZE: given })).toBe(size);
  });

  it('runs as many as it has slots, the others in the order in which they came', async () => {
    const governor = new Governor(2);
    const started: number[] = [];
    const finish: (() => void)[] = [];
    const runs = [0, 1, 2, 3].map((id) =>
      governor.run(() => {
        started.push(id);
        return new Promise<void>((resolve) => finish.push(resolve));
      }),
    );
    await Promise.resolve();
    expect(started).toEqual([0, 1]);
    expect(governor.full).toBe(true);
    finish[0]!();
    await runs[0];
    await Promise.resolve();
    expect(started).toEqual([0, 1, 2]);
    finish[1]!();
    finish[2]!();
    await expect.poll(() => started).toEqual([0, 1, 2, 3]);
    finish[3]!();
    await Promise.all(runs);
    expect(governor.full).toBe(false);
  });

  it('gets the slot back when the work fails', async () => {
    const governor = new Governor(1);
    await expect(governor.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(governor.full).toBe(false);
    expect(await governor.run(() => Promise.resolve(1))).toBe(1);
  });

  it('makes work cheap while the pool is full, and skips what nobody waits for any more', async () => {
    const compressor = new Compressor(none, new Governor(1));
    const [calm, hurried, unwanted] = await Promise.all([
      compressor.encode('br', body, 'once'),
      compressor.encode('br', body, 'once'),
      compressor.encode('br', body, 'once', () => false),
    ]);
    expect(calm?.level).toBe(4);
    expect(hurried?.level).toBe(1);
    expect(unwanted).toBeNull();
  });

  it('compresses small bodies at once, unless the level asked for is slow', () => {
    const small = body.subarray(0, 10_000);
    const governor = new Governor(1);
    expect(new Compressor(none, governor).encode('gzip', small, 'once')).not.toBeInstanceOf(Promise);
    const slow = new Compressor({ ...none, br: 11 }, governor).encode('br', small, 'once');
    expect(slow).toBeInstanceOf(Promise);
    return slow;
  });
});
