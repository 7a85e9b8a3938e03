const quota = 'src/resources/cgroup/cpu.ts';
const memory = 'src/resources/cgroup/memory.ts';
const window = 'src/resources/resource-window.ts';
const membership = 'src/resources/cgroup/membership.ts';
const tests = [
  'test/unit/resources/environments.test.ts',
  'test/unit/resources/rates.test.ts',
  'test/unit/resources/throttling.test.ts',
  'test/unit/resources/cgroup/kernel-file.test.ts',
];

/** @type {import('./index.d.mts').Mutation[]} */
export const cgroups = [
  {
    name: 'the own cgroup’s CPU limit counts, not the lowest above it',
    file: quota,
    find: 'quotas.toSorted((a, b) => a.cores - b.cores)',
    replace: 'quotas',
    tests,
  },
  {
    name: 'the highest CPU limit counts',
    file: quota,
    find: 'a.cores - b.cores',
    replace: 'b.cores - a.cores',
    tests,
  },
  {
    name: 'throttling is read from the own cgroup, not from the one that holds the limit',
    file: quota,
    find: '`${directory}/cpu.stat`',
    replace: '`${directories[0]}/cpu.stat`',
    tests,
  },
  {
    name: 'v1 counts throttled time in microseconds',
    file: quota,
    find: "seconds(lineNumber(stat, 'throttled_time'), 1e9)",
    replace: "seconds(lineNumber(stat, 'throttled_time'), 1e6)",
    tests,
  },
  {
    name: 'every period is the kernel’s default',
    file: quota,
    find: '? null : quotaUs / periodUs;',
    replace: '? null : quotaUs / 100_000;',
    tests,
  },
  {
    name: 'inactive file pages are working set',
    file: memory,
    find: 'inactiveFileBytes === null ? null : Math.max(0, usageBytes - inactiveFileBytes)',
    replace: 'inactiveFileBytes === null ? null : usageBytes',
    tests,
  },
  {
    name: 'only the own cgroup’s memory limit counts',
    file: memory,
    find: 'const limitBytes = least(bounds.map((bound) => bound.limitBytes));',
    replace: 'const limitBytes = bounds[0]?.limitBytes ?? null;',
    tests,
  },
  {
    name: 'what siblings use of a parent’s limit is free',
    file: memory,
    find: 'Math.max(ownUse.workingSetBytes, workingSetBytes)',
    replace: 'Math.max(ownUse.workingSetBytes, 0 * workingSetBytes)',
    tests,
  },
  {
    name: 'page cache of any age is memory that is gone',
    file: memory,
    find: ' - line(STAT[version].activeFile)',
    replace: '',
    tests: ['test/unit/resources/memory-left.test.ts'],
  },
  {
    name: 'what siblings hold of a parent’s limit is left',
    file: memory,
    find: 'Math.max(ownUse.heldBytes, heldBytes)',
    replace: 'Math.max(ownUse.heldBytes, 0 * heldBytes)',
    tests: ['test/unit/resources/memory-left.test.ts'],
  },
  {
    name: 'v1’s limit of ancestors that cannot be seen is overlooked',
    file: memory,
    find: 'if (lowestBytes !== null) bounds',
    replace: 'if (lowestBytes === -1) bounds',
    tests,
  },
  {
    name: 'what is used counts for nothing where memory.stat does not tell',
    file: memory,
    find: '.workingSetBytes ?? usageBytes;',
    replace: '.workingSetBytes ?? 0 * usageBytes;',
    tests,
  },
  {
    name: 'v1’s word for no limit is a limit',
    file: 'src/resources/cgroup/kernel-file.ts',
    find: 'value === null || value < 0 || value > Number.MAX_SAFE_INTEGER ? null : value',
    replace: 'value === null || value < 0 ? null : value',
    tests,
  },
  {
    name: 'a counter that went back makes a negative rate',
    file: window,
    find: ' || after < before ? null',
    replace: ' ? null',
    tests,
  },
  {
    name: 'counters of two places make a rate',
    file: window,
    find: ' || before.place !== after.place',
    replace: '',
    tests,
  },
  {
    name: 'counters of two levels make a throttled ratio',
    file: window,
    find: 'directory === quota.directory',
    replace: "directory !== '?'",
    tests,
  },
  {
    name: 'the lowest limit’s throttling is told, though another is hit',
    file: window,
    find: 'limits.toSorted((a, b) => (b.ratio ?? Infinity) - (a.ratio ?? Infinity))[0]',
    replace: 'limits[0]',
    tests,
  },
  {
    name: 'a hidden limit throttles only while none that can be seen does',
    file: window,
    find: 'if (any > visible * (1 + INEXACT)) return true;',
    replace: 'if (any > 0 && visible === 0) return true;',
    tests,
  },
  {
    name: 'what siblings lost to a parent is taken for all that there was',
    file: window,
    find: 'any < visible * (1 - INEXACT) ? null : false',
    replace: 'any < 0 ? null : false',
    tests,
  },
  {
    name: 'a path ends at its colon',
    file: membership,
    find: '(\\/.*?)',
    replace: '(\\/[^:]*).*?',
    tests,
  },
];
