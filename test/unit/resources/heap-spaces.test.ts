import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { heapSpaces, percentageBase } from '../../../src/resources/heap-spaces.js';
import { GIB, MIB } from '../../fixtures/kernel/kernel-files.js';
import { nodeBinaries } from '../../fixtures/node-versions.js';

const run = promisify(execFile);
const ASK = 'console.log(process.versions.node, require("node:v8").getHeapStatistics().heap_size_limit)';

describe.each(nodeBinaries())('the spaces of the heap, on $name', ({ execPath }) => {
  const toLimit = async (...flags: string[]): Promise<{ version: string; limitBytes: number }> => {
    const { stdout } = await run(execPath, [...flags, '-e', ASK], { env: {} });
    const [version, limit] = stdout.trim().split(' ');
    return { version: version!, limitBytes: Number(limit) };
  };

  it('are what V8 has', async () => {
    const [unset, set, small] = [
      await toLimit(),
      await toLimit('--max-old-space-size=384'),
      await toLimit('--max-old-space-size=384', '--max-semi-space-size=8'),
    ];
    const youngBytes = set.limitBytes - 384 * MIB;
    expect(heapSpaces(set.limitBytes, '--max-old-space-size=384', set.version)).toEqual({
      oldBytes: 384 * MIB,
      youngBytes,
    });
    const without = heapSpaces(unset.limitBytes, '', unset.version);
    expect(without.youngBytes).toBe(youngBytes);
    // V8's own choice is a share of the machine's memory, in whole megabytes.
    expect(without.oldBytes / MIB).toBeCloseTo(Math.round(without.oldBytes / MIB), 6);
    expect(heapSpaces(unset.limitBytes, '--max-semi-space-size=8', unset.version).youngBytes).toBe(
      small.limitBytes - 384 * MIB,
    );
    if (Number.parseInt(set.version, 10) < 22) return;
    // Node counts whole megabytes.
    const share = await toLimit('--max-old-space-size-percentage=25');
    const spaces = heapSpaces(
      share.limitBytes,
      '--max-old-space-size-percentage=25',
      share.version,
      percentageBase(true),
    );
    expect(Math.abs(spaces.youngBytes - youngBytes)).toBeLessThanOrEqual(MIB);
  });
});

it.each([
  '--max-old-space-size=384',
  '--max_old_space_size=384',
  '--max-old-space-size 384',
  '--max_old-space_size 384 --no-warnings',
  '--max-old-space-size=512 --max-semi-space-size=64 --max-old-space-size=384',
])('takes the old space from %s', (flags) => {
  expect(heapSpaces(GIB, flags).oldBytes).toBe(384 * MIB);
});

it.each([
  ['20.19.0', 524, 512],
  ['22.23.3', 1_048, 1_024],
  ['24.21.0', 560, 512],
  ['24.21.0', 2_240, 2_048],
  ['26.10.0', 1_072, 1_024],
  ['26.10.0', 4_192, 4_096],
])('tells the old space of Node %s from a limit of %s MB', (version, limitMb, oldMb) => {
  expect(heapSpaces(limitMb * MIB, '', version).oldBytes / MIB).toBeCloseTo(oldMb, 6);
});

it('takes the old space from a percentage of what Node sees, before megabytes', () => {
  const flags = '--max-old-space-size=100 --max-old-space-size-percentage=75';
  expect(heapSpaces(432 * MIB, flags, '22.23.3', 512 * MIB)).toEqual({ oldBytes: 384 * MIB, youngBytes: 48 * MIB });
  expect(heapSpaces(432 * MIB, flags, '20.19.0', null).oldBytes).toBe(100 * MIB);
});

it.each([
  [true, 512, 512],
  [true, 0, 8_192],
  [true, 2 ** 64 / MIB, 8_192],
  [false, 512, null],
])('percentages are of what Node sees: flag %s, constrained to %s MB', (hasFlag, constrainedMb, baseMb) => {
  const base = percentageBase(hasFlag, constrainedMb * MIB, 8_192 * MIB);
  expect(base).toBe(baseMb === null ? null : baseMb * MIB);
});

it('leaves it to V8 where the flag is 0', () => {
  expect(heapSpaces(432 * MIB, '--max-old-space-size=0', '20.19.0').youngBytes).toBe(48 * MIB);
});
