// resources-figures: what Node, OpenTelemetry host-metrics and this library say of a container's limits, in real cgroups.
//
//   npm run bench -- resources-figures              needs root and cgroup v1; `--node 24` asks another Node
//
// Each process burns CPU for a second; the truth is what was written into the kernel's files.
// What would make the numbers lie: nothing here is a time. But cgroups on other systems (v2, Kubernetes) give Node other
// mistakes and other successes; this table is of the machine that it names.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { installLocked } from '../scripts/install.mjs';
import { environment, nodeMajorOf, nodeVersionOf, readFlags, writeResult } from './harness/index.mjs';
import { canMakeCgroups, LimitedCgroup } from './resources/limited-cgroup.mjs';

const MIB = 2 ** 20;
const flags = readFlags();
if (!canMakeCgroups()) {
  console.error('resources-figures needs root and a writable cgroup v1 hierarchy of cpu, cpuacct and memory.');
  process.exit(1);
}
installLocked('bench/resources');
const script = fileURLToPath(new URL('resources/figures-process.mjs', import.meta.url));

function ask(before, wrapper = '') {
  const command = `${before} && exec ${wrapper} ${flags.node} ${script}`;
  const { stdout, stderr, status } = spawnSync('unshare', ['--mount', 'sh', '-c', command], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`A process failed: ${stderr}`);
  return JSON.parse(stdout);
}

const CASES = [
  { name: 'limits on the own cgroup', where: 'leaf' },
  { name: 'limits on the parent', where: 'parent' },
  { name: 'limits on the parent, which the mounts hide (a container in a limited pod)', where: 'parent', hidden: true },
  { name: 'limits on the parent, cgroup namespace', where: 'parent', wrapper: 'unshare --cgroup' },
];

const rows = [{ name: 'no limit', truth: { cpuCores: null, memoryBytes: null }, ...ask('true') }];
for (const { name, where, hidden, wrapper } of CASES) {
  const cgroup = new LimitedCgroup();
  try {
    cgroup.limit(where, 0.5, 256 * MIB);
    const truth = { cpuCores: 0.5, memoryBytes: 256 * MIB };
    rows.push({ name, truth, ...ask(cgroup.joinScript({ hidden }), wrapper) });
  } finally {
    await cgroup.remove();
  }
}

const result = {
  name: `resources-figures-node${nodeMajorOf(flags.node)}`,
  ...environment(nodeVersionOf(flags.node)),
  rows,
};
if (flags.write) writeResult(result);

const mb = (bytes) => (bytes === null || bytes === undefined ? 'none' : `${Math.round(bytes / MIB)} MB`);
const percent = (ratio) => (ratio === null ? '?' : `${Math.round(ratio * 100)} %`);
const throttling = ({ throttledRatio, throttledByHiddenAncestor }) =>
  throttledByHiddenAncestor === true
    ? 'yes, by a hidden limit'
    : throttledRatio === null
      ? 'none'
      : percent(throttledRatio);
console.log(
  [
    '| case | truth | `constrainedMemory()` | `availableParallelism()` | host-metrics: memory, CPUs | ours: limits | ours: throttled periods |',
    '|---|---|---|---|---|---|---|',
    ...rows.map(({ name, truth, node, hostMetrics, ours }) =>
      [
        '',
        name,
        `${truth.cpuCores ?? 'no'} cores, ${mb(truth.memoryBytes)}`,
        node.constrainedMemory > Number.MAX_SAFE_INTEGER ? '2^64' : mb(node.constrainedMemory),
        node.availableParallelism,
        `${mb(hostMetrics.memoryBytes)}, ${hostMetrics.cpus}`,
        `${ours.cpuCores ?? 'no'} cores, ${mb(ours.memoryBytes)}`,
        throttling(ours),
        '',
      ]
        .join(' | ')
        .trim(),
    ),
  ].join('\n'),
);
