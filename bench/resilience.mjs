// resilience: five outages of an upstream, and what a call through it costs: beside opossum and cockatiel.
//
//   npm run bench -- resilience                              the published run: 8 s an outage, about four minutes
//   npm run bench -- resilience --outages blocked,stalled --seconds 3
//
// Sources of error, and how each is excluded:
// - An upstream in this process would be blocked with it: each policy and its upstream are processes of their own.
// - One outage differs from the next: recovery depends on when in `openMs` (1 s for all) the upstream comes back.
// - A blocked loop delays callers too: what counts there is `opened`, and `failed` against none.
// - opossum has no retries, so it adds no load; its callers see each failure.
// - Cost is a loop in one process over a call that answers at once: an I/O call costs fifty times more.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { installLocked } from '../scripts/install.mjs';
import { environment, readNodeMajor, readNodeVersion, readFlags, writeResult } from './harness/index.mjs';

const BREAKERS = ['AbortSignal.timeout', 'opossum 9', 'cockatiel 3', 'nestjs-perf/resilience'];
const OUTAGES = ['killed', 'stalled', 'slow', 'flapping', 'blocked'];

const flags = readFlags({
  seconds: { type: 'string', default: '8' },
  outages: { type: 'string' },
  rounds: { type: 'string', default: '15' },
  burst: { type: 'string', default: '20000' },
});
installLocked('bench/peers');
const where = environment(readNodeVersion(flags.node));
const run = (script, args) => {
  const path = fileURLToPath(new URL(`resilience/${script}.mjs`, import.meta.url));
  return JSON.parse(execFileSync(flags.node, [path, ...args], { encoding: 'utf8' }));
};

const outages = flags.outages?.split(',') ?? OUTAGES;
const rows = outages.flatMap((outage) => BREAKERS.map((policy) => run('outage', [policy, outage, flags.seconds])));
console.log(
  '| outage | policy | asked | failed | breaker opened | sent per call | p50, p99, max ms | recovery ms |\n|---|---|---:|---:|---:|---:|---:|---:|',
);
for (const { outage, policy, asked, failed, opened, amplification, p50, p99, max, recoveryMs } of rows) {
  console.log(
    `| ${[outage, policy, asked, failed, opened, amplification, `${p50}, ${p99}, ${max}`, recoveryMs ?? '> 4000'].join(' | ')} |`,
  );
}
const cost = flags.outages === undefined ? run('cost', [String(flags.rounds), String(flags.burst)]) : [];
for (const { policy, cpuUsBeyondBare } of cost)
  console.log(`${policy}: ${cpuUsBeyondBare} µs of CPU a call beyond the bare one`);
const options = { seconds: Number(flags.seconds), rounds: flags.rounds, burst: flags.burst };
const name = `resilience-node${readNodeMajor(flags.node)}`;
if (flags.write && flags.outages === undefined) writeResult({ name, ...where, options, rows: [...rows, ...cost] });
