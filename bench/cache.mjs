// cache: what a hit of `@Cached()` costs over the await of a promise that is there, beside memoizee, cache-manager, cacheable, async-cache-dedupe.
//
//   npm run bench -- cache                    the published run, some minutes
//   npm run bench -- cache --node 24
//
// Sources of error, and how each is excluded:
// - Everything is in one process, and nothing else happens in it: caches of the CPU are warm. Trust ratios before microseconds.
// - The first row is what any answer costs: the loop, the `await` and a look into a Map. It is taken off the others. Its twin must
//   come out near 0; a run whose twin does not is rejected.
// - memoizee, cache-manager and cacheable keep no statistics here and know no stale values; async-cache-dedupe has its own.
// - bentocache is not compared: its peers do not install beside ioredis 6.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { installLocked } from '../scripts/install.mjs';
import {
  environment,
  medianWithInterval,
  readNodeMajor,
  readNodeVersion,
  readFlags,
  writeResult,
} from './harness/index.mjs';

const flags = readFlags({ burst: { type: 'string', default: '100000' } });
installLocked('bench/peers');
const where = environment(readNodeVersion(flags.node));

const script = fileURLToPath(new URL('cache/hits.mjs', import.meta.url));
const args = [script, String(Math.ceil(flags.rounds / flags.generations)), String(flags.burst)];
const generations = Array.from({ length: flags.generations }, () =>
  execFileSync(flags.node, args, { encoding: 'utf8' })
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line)),
);

const names = Object.keys(generations[0][0]);
const [base] = names;
const rounded = (us) => Math.round(us * 1_000) / 1_000;
const rows = names.map((name) => {
  const over = (round) => (name === base ? round[name] : round[name] - round[base]);
  const { median, low, high } = medianWithInterval(generations.map((rounds) => rounds.map(over)));
  return { name, cpuUsPerHit: rounded(median), interval: [rounded(low), rounded(high)] };
});
console.table(rows);

const [{ cpuUsPerHit: baseUs }, { cpuUsPerHit: twinUs }] = rows;
if (Math.abs(twinUs) > 0.1 * baseUs)
  throw new Error(`Rejected: the twin of "${base}" differs from it by ${twinUs} µs.`);
const { rounds, burst } = flags;
const options = { rounds, generations: flags.generations, burst };
if (flags.write) writeResult({ name: `cache-node${readNodeMajor(flags.node)}`, ...where, options, rows });
