// One process of resources-cost: times samples and single reads in turn and prints the medians of its rounds as JSON.
import { existsSync, readFileSync } from 'node:fs';
import { createResourceSampler } from '../../dist/index.js';
import { median } from '../harness/statistics.mjs';

const rounds = Number(process.argv[2]);
const CALLS = 200;
const cpuStat = ['/sys/fs/cgroup/cpu/cpu.stat', '/sys/fs/cgroup/cpu.stat'].find((path) => existsSync(path));
const sampler = createResourceSampler();

const variants = {
  read: () => readFileSync(cpuStat, 'utf8'),
  readAgain: () => readFileSync(cpuStat, 'utf8'),
  sample: () => sampler.sample(),
};

/** Median time of one call, microseconds: a mean would count the other processes of the machine. */
function timed(call) {
  const times = [];
  for (let i = 0; i < CALLS; i++) {
    const startedNs = process.hrtime.bigint();
    call();
    times.push(Number(process.hrtime.bigint() - startedNs) / 1_000);
  }
  return median(times);
}

for (const call of Object.values(variants)) for (let i = 0; i < 10; i++) timed(call);
const result = { read: [], readAgain: [], sample: [] };
for (let round = 0; round < rounds; round++) {
  const order = Object.keys(variants);
  for (const name of round % 2 === 0 ? order : order.reverse()) result[name].push(timed(variants[name]));
}

const discoveries = [];
for (let i = 0; i < 40; i++) {
  const startedNs = process.hrtime.bigint();
  const fresh = createResourceSampler();
  fresh.sample();
  discoveries.push(Number(process.hrtime.bigint() - startedNs) / 1_000);
  fresh.close();
}
sampler.close();
process.stdout.write(JSON.stringify({ ...result, discovery: median(discoveries) }));
