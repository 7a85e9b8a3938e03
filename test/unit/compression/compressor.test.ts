import { describe, expect, it } from 'vitest';
import { compressOnPool, Compressor, countSlots } from '../../../src/compression/codec.js';

const none = { zstd: null, br: null, gzip: null };
const body = Buffer.from('flight 4711 '.repeat(5_000));

describe('the compressor', () => {
  it.each([
    [4, 8, 3],
    [4, 2, 2],
    [1, 8, 1],
    [128, 16, 16],
    [2, 1, 1],
    [Number.NaN, 8, 1],
  ])('leaves a thread free: a pool of %i on %i cores runs %i', (pool, cores, slots) => {
    expect(countSlots(pool, cores)).toBe(slots);
  });

  it('runs as many as it has slots, the others in the order in which they came, and frees the slot of a failure', async () => {
    const compressor = new Compressor({ ...none, gzip: 1 }, 1);
    const ended: number[] = [];
    const bad = { byteLength: 1_000_000 } as Uint8Array;
    const runs = [body, bad, body, body].map(async (each, id) => {
      try {
        await compressor.encode('gzip', each, 'once');
      } finally {
        ended.push(id);
      }
    });
    expect((await Promise.allSettled(runs)).map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
    ]);
    expect(ended).toEqual([0, 1, 2, 3]);
  });

  it('makes work cheap while the pool is full, and skips what nobody waits for any more', async () => {
    const compressor = new Compressor(none, 1);
    const [calm, hurried, unwanted] = await Promise.all([
      compressor.encode('br', body, 'once'),
      compressor.encode('br', body, 'once'),
      compressor.encode('br', body, 'once', () => false),
    ]);
    expect([calm, hurried, unwanted]).toEqual([
      await compressOnPool('br', body, 4),
      await compressOnPool('br', body, 1),
      null,
    ]);
  });

  it('compresses small bodies at once, unless the level asked for is slow', () => {
    const small = body.subarray(0, 10_000);
    expect(new Compressor(none, 1).encode('gzip', small, 'once')).not.toBeInstanceOf(Promise);
    const slow = new Compressor({ ...none, br: 11 }, 1).encode('br', small, 'once');
    expect(slow).toBeInstanceOf(Promise);
    return slow;
  });
});
