// Turns a run into one JSON file under bench/results and a Markdown table.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { basename } from 'node:path';
import { pairedRatios } from './interleaved.mjs';
import { canPin } from './pinned-process.mjs';
import { median, medianWithInterval } from './statistics.mjs';

const RESULTS = new URL('../results/', import.meta.url);

/** The command that repeats this run: every flag, as it was given. */
export function commandLine([, script, ...flags] = process.argv) {
  const quoted = flags.map((flag) => (/^[\w./:=,@%+-]+$/.test(flag) ? flag : `'${flag.replaceAll("'", "'\\''")}'`));
  return ['npm run bench --', basename(script, '.mjs'), ...quoted].join(' ');
}

const git = (args, cwd) => execFileSync('git', args, { encoding: 'utf8', cwd }).trim();

/** A result names the commit that it measured: throws where files differ from it, results of earlier parts aside. */
export function refuseUncommittedChanges(folder = process.cwd()) {
  const changed = git(['status', '--porcelain', '--untracked-files=no', '--', ':/', ':!/bench/results'], folder);
  if (changed === '') return;
  throw new Error(
    `A result names its commit, and these files differ from it:\n${changed}\nCommit them, or pass --no-write to measure without writing bench/results.`,
  );
}

/** Machine, time, commit and command of a result. Call it before the run: a later commit was not measured. */
export function environment(nodeVersion = process.version) {
  return {
    date: new Date().toISOString(),
    commit: git(['rev-parse', '--short=12', 'HEAD']),
    command: commandLine(),
    node: nodeVersion,
    machine: {
      cpu: cpus()[0]?.model ?? 'unknown',
      cores: cpus().length,
      memoryGiB: Math.round(totalmem() / 2 ** 30),
      system: `${process.platform} ${release()} ${process.arch}`,
      pinned: canPin,
    },
  };
}

/** The result of `runInterleaved`: one row for each variant, medians, and ratios paired against the first one. */
export function summarise(variants, flags, { discarded, generations }, { burstMs } = {}) {
  const { rounds, warmup, connections } = flags;
  const size = burstMs === undefined ? { burst: flags.burst } : { burstMs };
  const rates = generations.flatMap(({ latency }) => Object.values(latency).flat()).map(({ ratePerS }) => ratePerS);
  const atOneRate = rates.length > 0;
  const ratePerS = atOneRate ? { ratePerS: Math.round(median(rates)), ratePhases: flags.ratePhases } : {};
  const phases = generations.map(({ latency }) => ({ bursts: latency }));
  return {
    options: { rounds, generations: generations.length, ...size, warmup, connections, ...ratePerS },
    discardedRuns: discarded.map((ratio) => rounded(ratio, 3)),
    rows: variants.map(({ name }) => {
      const all = (quantity) => median(generations.flatMap(({ bursts }) => bursts[name].map((one) => one[quantity])));
      const ms = (quantity) => {
        const given = generations.flatMap(({ latency }) => latency[name] ?? []).map((phase) => phase[quantity]);
        return rounded(given.length === 0 ? all(quantity) : median(given), 3);
      };
      return {
        name,
        cpuUsPerRequest: rounded(all('cpuUs'), 2),
        cpuRatio: pairRatio(generations, name, variants[0].name, 'cpuUs'),
        requestsPerS: rounded(all('requestsPerS'), 1),
        throughputRatio: pairRatio(generations, name, variants[0].name, 'requestsPerS'),
        p50Ms: ms('p50Ms'),
        p99Ms: ms('p99Ms'),
        ...(atOneRate && { p99Ratio: pairRatio(phases, name, variants[0].name, 'p99Ms') }),
        bodyBytes: Math.round(all('bodyBytes')),
      };
    }),
  };
}

/** `{ median, low, high }` of one variant's bursts over another's, paired by round. */
export function pairRatio(generations, name, baseName, quantity) {
  const by = generations.map((generation) => pairedRatios(generation, name, baseName, quantity));
  return Object.fromEntries(Object.entries(medianWithInterval(by)).map(([key, value]) => [key, rounded(value, 4)]));
}

/** Writes bench/results/`result.name`.json, one row on a line. */
export function writeResult({ rows, ...about }) {
  mkdirSync(RESULTS, { recursive: true });
  const oneLine = (list) =>
    list
      .replaceAll(/\s*\n\s*/g, ' ')
      .replace('[ ', '[')
      .replace(' ]', ']');
  const head = JSON.stringify(about, null, 2)
    .replaceAll(/\[[^[\]]*\]/g, oneLine)
    .replace(/\n\}$/, '');
  const lines = rows.map((row) => `    ${JSON.stringify(row)}`);
  writeFileSync(new URL(`${about.name}.json`, RESULTS), `${head},\n  "rows": [\n${lines.join(',\n')}\n  ]\n}\n`);
}

/** The summary as a Markdown table. */
export function markdownTable(rows) {
  const header =
    '| | CPU µs / request | CPU ratio (95 %) | req/s | req/s ratio | p50 ms | p99 ms | p99 ratio |\n|---|---:|---:|---:|---:|---:|---:|---:|';
  const lines = rows.map((row) => {
    const { cpuUsPerRequest, requestsPerS, p50Ms, p99Ms, p99Ratio } = row;
    const cells = [cpuUsPerRequest.toFixed(1), interval(row.cpuRatio), requestsPerS, interval(row.throughputRatio)];
    const tail = [p50Ms.toFixed(2), p99Ms.toFixed(2), p99Ratio === undefined ? '' : interval(p99Ratio)];
    return `| ${[row.name, ...cells, ...tail].join(' | ')} |`;
  });
  return `${header}\n${lines.join('\n')}`;
}

/** `1.02 (1.01–1.04)` */
export const interval = ({ median, low, high }) => `${median.toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`;

/** One sentence: method, machine, version, command. */
export function provenance({ options, discardedRuns, node, machine, commit, command }) {
  const latency =
    options.ratePhases === undefined
      ? ''
      : ` p50 and p99 at ${options.ratePerS} requests a second, ${options.ratePhases * options.generations} paired phases.`;
  const burst = options.burst === undefined ? `${options.burstMs} ms` : `${options.burst} requests`;
  return (
    `Median of ${options.rounds} interleaved rounds of ${burst} over ${options.generations} process generations, ` +
    `paired against the first row; the second row is the same server once more.${latency} ${discardedRuns.length} noisy runs discarded. ` +
    `Node ${node.slice(1)}, ${machine.cores} × ${machine.cpu}, commit ${commit}, \`${command}\`.`
  );
}

function rounded(number, digits) {
  return Number(number.toFixed(digits));
}
