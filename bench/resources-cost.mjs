// resources-cost: time of one resource sample, against one readFileSync of cpu.stat.
//
//   npm run bench -- resources-cost
//   npm run bench -- resources-cost --rounds 10 --generations 2 --no-write
//
// As the machine is and, as root on cgroup v1, in a cgroup whose parent holds a CPU and a memory limit (more files).
// What would make the numbers lie:
// - A loop keeps caches warm and code compiled. `spaced` is the time of a sample after 50 ms of rest, as in service.
// - Kernels with many child cgroups take longer for memory.stat. The tree of this machine is small.
// - A process in which two identical reads differ by more than 5 % is discarded.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { environment, median, medianWithInterval, readFlags, writeResult } from './harness/index.mjs';
import { canMakeCgroups, LimitedCgroup } from './resources/limited-cgroup.mjs';

const SAMPLER_REDISCOVERS_EVERY_S = 30;
const flags = readFlags();
const script = fileURLToPath(new URL('resources/cost-process.mjs', import.meta.url));
const round = (value, digits = 2) => Number(value.toFixed(digits));

function generation(before) {
  const command = `${before} && exec ${flags.node} ${script} ${flags.rounds}`;
  const { stdout, stderr, status } = spawnSync('sh', ['-c', command], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`A benchmark process failed: ${stderr}`);
  return JSON.parse(stdout);
}

function measure(name, before) {
  const kept = [];
  const discarded = [];
  while (kept.length < flags.generations) {
    const one = generation(before);
    const control = median(one.readAgain.map((us, index) => us / one.read[index]));
    if (Math.abs(control - 1) <= 0.05) kept.push(one);
    else discarded.push(round(control, 3));
    if (discarded.length > 2 * flags.generations) throw new Error(`Too noisy: control ratios ${discarded.join(', ')}.`);
  }
  const ratios = (key) => medianWithInterval(kept.map((one) => one[key].map((us, index) => us / one.read[index])));
  const rounded = ({ median, low, high }) => ({ median: round(median), low: round(low), high: round(high) });
  const spaced = median(kept.map((one) => one.spaced));
  const discovery = median(kept.map((one) => one.discovery));
  return {
    name,
    sampleUs: round(median(kept.flatMap((one) => one.sample))),
    readFileSyncUs: round(median(kept.flatMap((one) => one.read))),
    ratio: rounded(ratios('sample')),
    control: rounded(ratios('readAgain')),
    spacedUs: round(spaced),
    discoveryUs: round(discovery),
    percentOfACoreAt1Hz: round((spaced + discovery / SAMPLER_REDISCOVERS_EVERY_S) / 1e4, 4),
    discarded,
  };
}

const rows = [measure('as the machine is', 'true')];
if (canMakeCgroups()) {
  const cgroup = new LimitedCgroup();
  try {
    cgroup.limit('parent', 1, 512 * 2 ** 20);
    rows.push(measure('limits on the parent cgroup', cgroup.joinScript()));
  } finally {
    await cgroup.remove();
  }
}

const result = {
  name: 'resources-cost',
  ...environment(),
  options: { rounds: flags.rounds, generations: flags.generations },
  rows,
};
if (flags.write) writeResult(result);
console.log(JSON.stringify(result, null, 2));
