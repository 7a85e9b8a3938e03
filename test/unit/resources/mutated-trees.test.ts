import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ResourceSample } from '../../../src/core/record.js';
import { createResourceSampler } from '../../../src/resources/resource-sampler.js';
import { ENVIRONMENTS } from '../../fixtures/kernel/environments.js';
import { type KernelTreeFiles, kernelTree } from '../../fixtures/kernel/kernel-tree.js';

/** Shapes of damage: files that are missing, empty, cut off, directories, of another file, or hold what no kernel writes. */
const damage = fc.oneof(
  fc.constant({ kind: 'missing' as const }),
  fc.constant({ kind: 'directory' as const }),
  fc.record({ kind: fc.constant('text' as const), text: fc.string({ unit: 'binary', maxLength: 80 }) }),
  fc.record({ kind: fc.constant('cut' as const), at: fc.nat(200) }),
  fc.record({ kind: fc.constant('swap' as const), with: fc.nat(1_000) }),
  fc.record({
    kind: fc.constant('number' as const),
    digits: fc.oneof(
      fc.constantFrom(
        '9223372036854775807',
        '9223372036854775808',
        '18446744073709551615',
        '-1',
        '0',
        '-0',
        '1e9',
        '0x10',
      ),
      fc.bigInt({ min: 0n, max: 2n ** 70n }).map(String),
      fc.nat(500).map((length) => '9'.repeat(length)),
    ),
  }),
);
type Damage = typeof damage extends fc.Arbitrary<infer T> ? T : never;

function damaged(files: KernelTreeFiles, path: string, how: Damage): KernelTreeFiles {
  const { [path]: content, ...rest } = files;
  const text = content ?? '';
  if (how.kind === 'missing') return rest;
  if (how.kind === 'directory') return { ...rest, [path]: null };
  if (how.kind === 'text') return { ...rest, [path]: how.text };
  if (how.kind === 'cut') return { ...rest, [path]: text.slice(0, how.at) };
  if (how.kind === 'number') return { ...rest, [path]: text.replace(/-?\d+|max/g, how.digits) };
  const others = Object.values(rest);
  return { ...rest, [path]: others[how.with % Math.max(1, others.length)] ?? '' };
}

/** A directory put where another path needs a parent is no tree at all; such pairs are left out. */
const buildable = (files: KernelTreeFiles): KernelTreeFiles =>
  Object.fromEntries(
    Object.entries(files).filter(([path]) => files[path.slice(0, path.lastIndexOf('/'))] === undefined),
  );

function everyNumber(value: unknown, visit: (number: number, path: string) => void, path = 'sample'): void {
  if (typeof value === 'number') visit(value, path);
  else if (typeof value === 'object' && value !== null) {
    for (const [key, inner] of Object.entries(value)) everyNumber(inner, visit, `${path}.${key}`);
  }
}

function expectSane(sample: ResourceSample): void {
  everyNumber(sample, (number, path) => {
    if (!Number.isFinite(number) || number < 0 || number >= 2 ** 62) throw new Error(`${path} is ${number}`);
  });
  const ratios = [
    sample.pressure.cpuSomeRatio,
    sample.pressure.memoryFullRatio,
    sample.cpu.window?.throttledRatio ?? null,
  ];
  const { workingSetBytes, usageBytes, availableBytes } = sample.memory;
  const used = workingSetBytes ?? usageBytes ?? 0;
  const left = Math.max(0, (sample.limits.memoryBytes ?? Infinity) - used);
  if (availableBytes !== null) expect(availableBytes).toBeLessThanOrEqual(left);
  for (const ratio of ratios) if (ratio !== null) expect(ratio).toBeLessThanOrEqual(1);
}

describe('a damaged kernel tree', () => {
  // Trees are written to disk and sampled, so the normal run is bounded; PERF_LONG runs many more.
  const numRuns = process.env['PERF_LONG'] === undefined ? 25 : 5_000;

  it(
    'never makes the sampler throw, and never yields NaN, Infinity, a negative number or 2^63',
    { timeout: numRuns * 4_000 },
    () => {
      const wound = fc.record({ file: fc.nat(1_000), how: damage });
      const wounds = fc.array(wound, { minLength: 1, maxLength: 6 });
      fc.assert(
        fc.property(
          fc.nat(1_000),
          wounds,
          wounds,
          fc.constantFrom(0, 1, 1_000, 40_000),
          (environment, first, later, stepMs) => {
            const wounded = (files: KernelTreeFiles, all: typeof first): KernelTreeFiles =>
              all.reduce((tree, { file, how }) => {
                const paths = Object.keys(tree);
                return paths.length === 0 ? tree : damaged(tree, paths[file % paths.length]!, how);
              }, files);
            const { files } = ENVIRONMENTS[environment % ENVIRONMENTS.length]!;
            const tree = kernelTree(buildable(wounded(files, first)));
            let nowMs = 5_000;
            const sampler = createResourceSampler({ root: tree.root, now: () => nowMs });
            try {
              expectSane(sampler.sample());
              tree.remove('/');
              tree.write(buildable(wounded(files, later)));
              nowMs += stepMs;
              expectSane(sampler.sample());
              const advice = sampler.recommend();
              everyNumber(advice, (number, path) => {
                if (!Number.isSafeInteger(number) || number < 1) throw new Error(`${path} is ${number}`);
              });
            } finally {
              sampler.close();
              tree.dispose();
            }
          },
        ),
        { numRuns },
      );
    },
  );
});
