import { describe, expect, it } from 'vitest';
import { getHeapSpaceStatistics, type HeapSpaceInfo } from 'node:v8';
import { V8HeapSize } from '../../../../src/event-loop/interrupt/heap-size.js';

const MB = 1e6;

/** A process whose spaces are what the test says. */
function heapOf(megabytes: { old: number; young: number; youngSize: number }) {
  const space = (name: string, used: number, size: number): HeapSpaceInfo => ({
    space_name: name,
    space_used_size: used * MB,
    space_size: size * MB,
    space_available_size: 0,
    physical_space_size: size * MB,
  });
  return new V8HeapSize(() => [
    space('new_space', megabytes.young, megabytes.youngSize),
    space('old_space', megabytes.old, megabytes.old + 10),
    space('large_object_space', 5, 5),
  ]);
}

describe('what a collection may have to walk or copy', () => {
  it('counts all that the young generation has room for until ten measurements have shown what lives there', () => {
    const megabytes = { old: 30, young: 60, youngSize: 134 };
    const heap = heapOf(megabytes);
    for (let i = 0; i < 9; i++) {
      megabytes.young = 1 + i;
      expect(heap.measure()).toBe((30 + 5 + 67) * MB);
    }
    megabytes.young = 40;
    expect(heap.measure()).toBe((30 + 5 + 2 * 1) * MB);
  });

  it('counts what has stayed through the last ten measurements, twice, and no more than there is room for', () => {
    const megabytes = { old: 30, young: 3, youngSize: 134 };
    const heap = heapOf(megabytes);
    for (let i = 0; i < 10; i++) heap.measure();
    megabytes.young = 20;
    for (let i = 0; i < 9; i++) expect(heap.measure()).toBe((35 + 2 * 3) * MB);
    expect(heap.measure()).toBe((35 + 2 * 20) * MB);
    megabytes.young = 60;
    for (let i = 0; i < 10; i++) heap.measure();
    expect(heap.measure()).toBe((35 + 67) * MB);
  });

  it('is at most the old generation and the room of the young one, now or when it was measured', () => {
    const megabytes = { old: 30, young: 3, youngSize: 134 };
    const heap = heapOf(megabytes);
    expect(heap.mostBytes()).toBe((35 + 67) * MB);
    megabytes.old = 80;
    for (let i = 0; i < 10; i++) heap.measure();
    megabytes.old = 20;
    expect(heap.mostBytes()).toBe((85 + 67) * MB);
    megabytes.old = 200;
    expect(heap.mostBytes()).toBe((205 + 67) * MB);
  });

  it('is, for a collection of the young generation, what it holds and what the old one has grown by', () => {
    const megabytes = { old: 30, young: 60, youngSize: 134 };
    const heap = heapOf(megabytes);
    heap.measure();
    megabytes.young = 2;
    expect(heap.survivedBytes()).toBe(2 * MB);
    megabytes.old = 50;
    expect(heap.survivedBytes()).toBe((2 + 20) * MB);
    megabytes.old = 10;
    expect(heap.survivedBytes()).toBe(2 * MB);
  });

  it('is read anew by a look in the middle of a measurement', () => {
    const spaces = getHeapSpaceStatistics();
    let looked = 0;
    const heap = new V8HeapSize(() => {
      looked += 1;
      if (looked === 1) heap.mostBytes();
      return spaces;
    });
    expect(heap.measure()).toBe(new V8HeapSize(() => spaces).measure());
    expect(looked).toBe(2);
  });

  it('is read from V8', () => {
    const spaces = getHeapSpaceStatistics();
    const young = spaces.find(({ space_name: name }) => name === 'new_space')!;
    const oldBytes = spaces.reduce((sum, space) => sum + (space === young ? 0 : space.space_used_size), 0);
    expect(young.space_size).toBeGreaterThan(0);
    expect(new V8HeapSize(() => spaces).measure()).toBe(oldBytes + young.space_size / 2);
    expect(new V8HeapSize().mostBytes()).toBeGreaterThan(oldBytes / 2);
  });
});
