import { afterEach, describe, expect, it } from 'vitest';
import { KernelFiles } from '../../../../src/resources/kernel/kernel-file.js';
import { ProcessMemory } from '../../../../src/resources/kernel/process-memory.js';
import { type KernelTree, kernelTree } from '../../../fixtures/kernel/kernel-tree.js';

describe('resident memory', () => {
  let tree: KernelTree | null = null;
  afterEach(() => tree?.dispose());
  const near = (bytes: number, other: number): boolean => Math.abs(bytes - other) < other / 4;

  it('is what Node says', () => {
    const files = new KernelFiles('', true);
    expect(near(new ProcessMemory(files).rssBytes(), process.memoryUsage.rss())).toBe(true);
    files.close();
  });

  it.each([4_096, 16_384, 65_536])('counts pages of %s bytes', (pageBytes) => {
    const pages = Math.round(process.memoryUsage.rss() / pageBytes);
    tree = kernelTree({ '/proc/self/statm': `99999 ${pages} 10 1 0 5 0\n` });
    const memory = new ProcessMemory(new KernelFiles(tree.root, false));
    tree.write({ '/proc/self/statm': `99999 1000 10 1 0 5 0\n` });
    expect(memory.rssBytes()).toBe(1_000 * pageBytes);
  });

  it.each(['99999 3 10\n', 'garbage', '', null])('does not believe %j', (statm) => {
    tree = kernelTree({ '/proc/self/statm': statm });
    const memory = new ProcessMemory(new KernelFiles(tree.root, false));
    expect(near(memory.rssBytes(), process.memoryUsage.rss())).toBe(true);
  });
});
