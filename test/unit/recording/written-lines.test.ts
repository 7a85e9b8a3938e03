import { describe, expect, it } from 'vitest';
import { WrittenLines } from '../../../src/recording/written-lines.js';

describe('when a recording ends', () => {
  it('lines of sessions that are kept stay, others stay alone while their route is short of lines', () => {
    const lines = new WrittenLines();
    for (const [group, route] of [
      [1, 'GET /a'],
      [4_095, 'GET /a'],
      [4_095, 'GET /b'],
      [4_095, 'GET /b'],
      [4_095, 'GET /b'],
      [1, 'GET /b'],
    ] as const)
      lines.add(group, route);
    expect([lines.count('GET /a'), lines.count('GET /b'), lines.count('GET /c')]).toEqual([2, 4, 0]);
    const fates = lines.fates((group) => group < 4_095, 2);
    expect(fates).toEqual(['session', 'alone', 'alone', 'out', 'out', 'session']);
  });
});

describe('while a recording runs', () => {
  it('a line holds a few bytes of memory, however many there are', () => {
    const lines = new WrittenLines();
    const count = 500_000;
    gc!();
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < count; i++) lines.add(i % 4_096, `GET /${i % 100}`);
    gc!();
    expect((process.memoryUsage().heapUsed - before) / count).toBeLessThan(24);
    expect(lines.count('GET /0')).toBe(count / 100);
  });
});
