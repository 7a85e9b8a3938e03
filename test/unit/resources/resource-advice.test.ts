import { describe, expect, it } from 'vitest';
import {
  advise,
  recommendOldSpaceMb,
  writeHeapFlags,
  youngSpaceBytes,
} from '../../../src/resources/resource-advice.js';
import { GIB, MIB } from '../../fixtures/kernel/kernel-files.js';

const at = (
  cpuCores: number | null,
  memoryBytes: number | null,
  cpus: number | null = 8,
  machineBytes = 64 * GIB,
  youngBytes = 48 * MIB,
  memoryHighBytes: number | null = null,
) => advise({ cpuCores, memoryBytes, memoryHighBytes }, { cpus, memoryBytes: machineBytes }, youngBytes);

describe('advice on sizes', () => {
  it.each([
    [0.25, 8, 1, 2],
    [0.5, 8, 1, 2],
    [0.75, 8, 1, 3],
    [1, 8, 1, 4],
    [2.5, 8, 2, 4],
    [null, 8, 8, 4],
    [16, 2, 2, 4],
    [null, null, 1, 4],
  ])('a limit of %s cores on %s CPUs: %s workers, %s threads', (cores, cpus, workers, threadPoolSize) => {
    expect(at(cores, null, cpus)).toMatchObject({ workers, threadPoolSize, maxOldSpaceSizeMb: null });
  });

  it('leaves a quarter of the memory for everything that is not heap, and shares the rest among the workers', () => {
    expect(at(0.5, 512 * MIB).maxOldSpaceSizeMb).toBe(384);
    expect(at(4, 4 * GIB).maxOldSpaceSizeMb).toBe(768);
    expect(at(1, 1000).maxOldSpaceSizeMb).toBe(1);
  });

  it('takes a limit above the machine for the machine', () => {
    expect(at(1, 8 * GIB, 8, GIB).maxOldSpaceSizeMb).toBe(768);
  });

  it.each([
    ['20.19.0', 1_024, 768],
    ['22.23.3', 128, 80],
    ['24.21.0', 1_024, 768],
    ['24.21.0', 512, 320],
    ['24.21.0', 256, 128],
    ['26.10.0', 256, 160],
    ['26.10.0', 1, 1],
  ])('leaves room for the young space of Node %s in %s MB, half at the most', (version, memoryMb, oldSpaceMb) => {
    expect(recommendOldSpaceMb(memoryMb * MIB, youngSpaceBytes(version))).toBe(oldSpaceMb);
  });

  it.each([
    ['20.19.0', 512, 1, null, '--max-old-space-size=384'],
    ['20.19.0', 64, 1, null, '--max-old-space-size=32 --max-semi-space-size=4'],
    ['24.21.0', 1_024, 1, null, '--max-old-space-size=768'],
    ['24.21.0', 256, 1, null, '--max-old-space-size=128 --max-semi-space-size=16'],
    ['24.21.0', 256, 1, 256, '--max-old-space-size-percentage=50'],
    ['24.21.0', 2_048, 2, 2_048, '--max-old-space-size-percentage=37'],
    ['24.21.0', 8_192, 1, 8_192, '--max-old-space-size-percentage=75'],
    ['24.21.0', 1_024, 1, 12_000, '--max-old-space-size=768'],
    ['24.21.0', 1, 1, 1, '--max-old-space-size-percentage=100'],
  ])('names the flags for Node %s, %s MB and %s workers', (version, memoryMb, workers, baseMb, flags) => {
    const shareBase = baseMb === null ? null : baseMb * MIB;
    expect(writeHeapFlags(memoryMb * MIB, { youngBytes: youngSpaceBytes(version), workers, shareBase })).toBe(flags);
  });

  it.each([
    [null, 512],
    [4 * GIB, 512],
    [256 * MIB, 256],
  ])('takes the lower of memory.max and memory.high: %s bytes and 512 MB', (memoryBytes, boundMb) => {
    const { maxOldSpaceSizeMb, reasons } = at(1, memoryBytes, 8, 64 * GIB, 48 * MIB, 512 * MIB);
    expect(maxOldSpaceSizeMb).toBe(boundMb * 0.75);
    expect(reasons[2]).toContain(boundMb === 512 ? '75 % of 512 MB (memory.high);' : '75 % of 256 MB;');
  });

  it('says why, with what to set', () => {
    expect(at(0.5, 512 * MIB).reasons).toEqual([
      '1 worker: the CPU limit is 0.5 cores, and a worker that computes needs a whole one.',
      'UV_THREADPOOL_SIZE=2: the CPU limit is 0.5 cores, and more than 4 threads a core only take turns; set it in the environment before Node starts.',
      '--max-old-space-size=384: 75 % of 512 MB; the rest is for the young space, buffers, stacks, code and Node itself.',
    ]);
    expect(at(null, null, 4).reasons).toEqual([
      '4 workers: the process may run on 4 CPUs, and a worker that computes needs a whole one.',
      'UV_THREADPOOL_SIZE=4: the process may run on 4 CPUs, and more than 4 threads a core only take turns; set it in the environment before Node starts.',
      'No --max-old-space-size: no memory limit is known.',
    ]);
    expect(at(2, GIB).reasons[2]).toContain('75 % of 1024 MB, shared by 2 workers;');
  });
});
