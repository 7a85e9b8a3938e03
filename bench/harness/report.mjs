// What a run becomes: one JSON file under bench/results, and a Markdown table.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { basename } from 'node:path';
import { pairedRatios } from './interleaved.mjs';
import { canPin } from './pinned-process.mjs';
import { median, medianWithInterval } from './statistics.mjs';

const RESULTS = new URL('../results/', import.meta.url);

/** What to type to run this benchmark again just so: every flag that was given, as it was given. */
export function commandLine([, script, ...flags] = process.argv) {
  const quoted = flags.map((flag) => (/^[\w./:=,@%+-]+$/.test(flag) ? flag : `'${flag.replaceAll("'", "'\\''")}'`));
  return ['npm run bench --', basename(script, '.mjs'), ...quoted].join(' ');
}

/** Where, when and how: belongs into every result. */
export function environment(nodeVersion = process.version) {
  const git = (...args) => execFileSync('git', args, { encoding: 'utf8' }).trim();
  return {
    date: new Date().toISOString(),
    commit: git('rev-parse', '--short=12', 'HEAD'),
    // Not those of an earlier part of the same run.
    uncommittedChanges: git('status', '--porcelain', '--untracked-files=no', '--', ':/', ':!/bench/results') !== '',
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

/**
 * The result of `runInterleaved`: one row for each variant, ratios paired against the first, and every burst's CPU figure.
 * `where` is an {@link environment} of the time when the run started.
 */
export function summarise(name, variants, flags, { nodeVersion, discarded, generations }, where) {
  const baseName = variants[0].name;
  const { rounds, burst, warmup, connections } = flags;
  return {
    name,
    ...where,
    node: nodeVersion,
    options: { rounds, generations: generations.length, burst, warmup, connections },
    discardedRuns: discarded.map((ratio) => rounded(ratio, 4)),
    base: baseName,
    control: variants[1].name,
    rows: variants.map((variant) => {
      const all = (quantity) => generations.flatMap((bursts) => bursts[variant.name].map((one) => one[quantity]));
      const ratio = (quantity) => {
        const by = generations.map((bursts) => pairedRatios(bursts, variant.name, baseName, quantity));
        const { median, low, high } = medianWithInterval(by);
        return { median: rounded(median, 4), low: rounded(low, 4), high: rounded(high, 4) };
      };
      return {
        name: variant.name,
        // Its own, where it differs from the options'.
        ...(variant.burst !== undefined && { burst: variant.burst }),
        cpuUsPerRequest: rounded(median(all('cpuUs')), 2),
        cpuRatio: ratio('cpuUs'),
        requestsPerS: Math.round(median(all('requestsPerS'))),
        throughputRatio: ratio('requestsPerS'),
        p50Ms: rounded(median(all('p50Ms')), 3),
        p99Ms: rounded(median(all('p99Ms')), 3),
        cpuUsOfBursts: generations.map((bursts) => bursts[variant.name].map((one) => rounded(one.cpuUs, 2))),
      };
    }),
  };
}

/** Writes bench/results/`result.name`.json. */
export function writeResult(result) {
  mkdirSync(RESULTS, { recursive: true });
  const text = JSON.stringify(result, null, 2).replaceAll(/\[\s+(-?[\d.]+(?:,\s+-?[\d.]+)*)\s+\]/g, (_, list) => {
    return `[${list.replaceAll(/\s+/g, ' ')}]`;
  });
  writeFileSync(new URL(`${result.name}.json`, RESULTS), `${text}\n`);
}

/** The summary as a Markdown table with the line that says where it comes from. */
export function markdownTable(result) {
  const header =
    '| | CPU µs / request | CPU ratio (95 %) | req/s ratio | p50 ms | p99 ms |\n|---|---:|---:|---:|---:|---:|';
  const rows = result.rows.map((row) => {
    const cells = [
      row.name,
      row.cpuUsPerRequest.toFixed(1),
      interval(row.cpuRatio),
      row.throughputRatio.median.toFixed(2),
    ];
    return `| ${[...cells, row.p50Ms.toFixed(2), row.p99Ms.toFixed(2)].join(' | ')} |`;
  });
  return `${header}\n${rows.join('\n')}\n\n${provenance(result)}`;
}

/** `1.02 (1.01–1.04)` */
export const interval = ({ median, low, high }) => `${median.toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`;

/** One sentence: method, machine, version, command. */
export function provenance({ options, discardedRuns, node, machine, commit, command }) {
  return (
    `Median of ${options.rounds} interleaved rounds of ${options.burst} requests over ${options.generations} process generations, ` +
    `paired against the first row; the second row is the same server once more. ${discardedRuns.length} noisy runs discarded. ` +
    `Node ${node.slice(1)}, ${machine.cores} × ${machine.cpu}, commit ${commit}, \`${command}\`.`
  );
}

function rounded(number, digits) {
  return Number(number.toFixed(digits));
}
