// CPU time of one call that nothing is wrong with, microseconds beyond the bare call: bursts in turn, medians. Prints JSON.
import { BREAKERS } from '../peers/breakers.mjs';

const [rounds, burst] = process.argv.slice(2).map(Number);
const ask = async () => 42;
const options = { deadlineMs: 2_000, openMs: 1_000 };
const nestjsPerf = await BREAKERS['nestjs-perf/resilience'](ask, { ...options, retries: 0 });
const retrying = await BREAKERS['nestjs-perf/resilience'](ask, { ...options, retries: 2 });
const rows = {
  bare: BREAKERS.bare(ask, options).call,
  'bare again': BREAKERS.bare(ask, options).call,
  'AbortSignal.timeout': BREAKERS['AbortSignal.timeout'](ask, options).call,
  'opossum 9': BREAKERS['opossum 9'](ask, options).call,
  'cockatiel 3': BREAKERS['cockatiel 3'](ask, { ...options, retries: 2 }).call,
  'nestjs-perf/resilience': nestjsPerf.callWithoutSignal,
  'nestjs-perf/resilience, with its signal': nestjsPerf.call,
  'nestjs-perf/resilience, idempotent': retrying.callWithoutSignal,
};
const us = Object.fromEntries(Object.keys(rows).map((name) => [name, []]));
for (let round = -3; round < rounds; round++) {
  for (const [name, call] of Object.entries(rows)) {
    const before = process.cpuUsage();
    for (let i = 0; i < burst; i += 50) await Promise.all(Array.from({ length: 50 }, call));
    const { user, system } = process.cpuUsage(before);
    if (round >= 0) us[name].push((user + system) / burst);
  }
}
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const bare = median(us.bare);
console.log(
  JSON.stringify(
    Object.keys(rows).map((name) => ({
      cell: 'cost',
      policy: name,
      cpuUsBeyondBare: Number((median(us[name]) - bare).toFixed(2)),
    })),
  ),
);
process.exit();
