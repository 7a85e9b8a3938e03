const quota = 'src/resources/cgroup/cpu-quota.ts';
const memory = 'src/resources/cgroup/memory-usage.ts';
const window = 'src/resources/resource-window.ts';
const membership = 'src/resources/cgroup/membership.ts';
const tests = [
  'test/unit/resources/environments.test.ts',
  'test/unit/resources/rates.test.ts',
  'test/unit/resources/kernel/kernel-text.test.ts',
];

/** @type {import('./index.d.mts').Mutation[]} */
export const cgroups = [
  {
    name: 'the own cgroup’s CPU limit counts, not the lowest above it',
    file: quota,
    find: 'if (reading.limitCores !== null && cores >= reading.limitCores) continue;',
    replace: 'if (reading.limitCores !== null) continue;',
    tests,
  },
  {
    name: 'the highest CPU limit counts',
    file: quota,
    find: 'cores >= reading.limitCores',
    replace: 'cores <= reading.limitCores',
    tests,
  },
  {
    name: 'throttling is read from the own cgroup, not from the one that holds the limit',
    file: quota,
    find: 'const stat = level.stat.read();',
    replace: 'const stat = this.levels[0]!.stat.read();',
    tests,
  },
  {
    name: 'v1 counts throttled time in microseconds',
    file: quota,
    find: "v1: { key: 'throttled_time', perSecond: 1e9 }",
    replace: "v1: { key: 'throttled_time', perSecond: 1e6 }",
    tests,
  },
  {
    name: 'every period is the kernel’s default',
    file: quota,
    find: '? null : quotaUs / periodUs;',
    replace: '? null : quotaUs / DEFAULT_PERIOD_US;',
    tests,
  },
  {
    name: 'inactive file pages are working set',
    file: 'src/resources/cgroup/memory-level.ts',
    find: 'return inactiveFileBytes === null ? null : Math.max(0, usageBytes - inactiveFileBytes)',
    replace: 'return inactiveFileBytes === null ? null : usageBytes',
    tests,
  },
  {
    name: 'only the own cgroup’s memory limit counts',
    file: memory,
    find: '(reading.limitBytes === null || limitBytes < reading.limitBytes)',
    replace: '(reading.limitBytes === null)',
    tests,
  },
  {
    name: 'what siblings use of a parent’s limit is free',
    file: memory,
    find: 'const used = level === own ? reading.workingSetBytes : level.workingSet();',
    replace: 'const used = reading.workingSetBytes;',
    tests,
  },
  {
    name: 'v1’s limit of ancestors that cannot be seen is overlooked',
    file: memory,
    find: 'if (hiddenBytes === null || (reading',
    replace: 'if (hiddenBytes !== -1 || (reading',
    tests,
  },
  {
    name: 'v1’s word for no limit is a limit',
    file: 'src/resources/kernel/kernel-text.ts',
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
    find: ' || previous.place !== reading.place',
    replace: '',
    tests,
  },
  {
    name: 'counters of two levels make a throttled ratio',
    file: window,
    find: ' && before.heldBy === after.heldBy',
    replace: '',
    tests,
  },
  {
    name: 'a path ends at its colon',
    file: membership,
    find: 'line.slice(afterControllers + 1)',
    replace: "line.slice(afterControllers + 1).split(':')[0]!",
    tests,
  },
];
