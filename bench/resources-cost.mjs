// resources-cost: time of one resource sample, against one readFileSync of cpu.stat: in a loop, and once a second in a server.
//
//   npm run bench -- resources-cost
//   npm run bench -- resources-cost --rounds 10 --generations 2 --seconds 5 --no-write
//
// In a loop: as the machine is and, as root on cgroup v1, in a cgroup whose parent holds a CPU and a memory limit (more files).
// In a server (Nest on Fastify, everything on), idle and under `--rate` requests a second: `sampleUs` is a whole sample,
// `recordUs` a turn of the feature's timer for records, `featurePercentOfACore` every turn of its timers.
// What would make the numbers lie:
// - A loop keeps caches warm and limits (read every five seconds) remembered. A server does not. Its code is compiled as
//   after an hour: before they are timed, so many samples are taken.
// - In a server on a virtual machine the caches decide, and who else uses them: compare `sampleUs` with `readFileSyncUs`,
//   which is taken in the same second, not with another run. Another identical read is the control.
// - Clocks count time, not CPU time; on a machine that is not quiet the server's figures hold other processes as well.
// - Kernels with many child cgroups take longer for memory.stat. The tree of this machine is small.
// - A process in which two identical reads differ by more than 5 % is discarded.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { environment, median, medianWithInterval, nodeVersionOf, readFlags, writeResult } from './harness/index.mjs';
import { inService } from './resources/in-service.mjs';
import { canMakeCgroups, LimitedCgroup } from './resources/limited-cgroup.mjs';

const flags = readFlags({ seconds: { type: 'string', default: '60' }, rate: { type: 'string', default: '1000' } });
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
  return {
    name,
    sampleUs: round(median(kept.flatMap((one) => one.sample))),
    readFileSyncUs: round(median(kept.flatMap((one) => one.read))),
    ratio: rounded(ratios('sample')),
    control: rounded(ratios('readAgain')),
    discoveryUs: round(median(kept.map((one) => one.discovery))),
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

const seconds = Number(flags.seconds);
const ratePerS = Number(flags.rate);
const service = await inService({ seconds, ratePerS, node: flags.node });

const result = {
  name: 'resources-cost',
  ...environment(nodeVersionOf(flags.node)),
  options: { rounds: flags.rounds, generations: flags.generations, seconds, ratePerS },
  rows,
  inService: service,
};
if (flags.write) writeResult(result);
console.log(JSON.stringify(result, null, 2));
