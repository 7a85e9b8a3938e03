// The shared benchmark harness. A benchmark names its variants; this starts, loads, measures and reports them:
//
//   const flags = readFlags();
//   const variants = [{ name: 'bare', file }, { name: 'bare again', file }, { name: 'ours', file, args: ['ours'] }];
//   await benchmark('my-bench', variants, flags, { request: { path: '/' } });
//
// The variant's script listens on a port of its choice and then calls `serveOn(port)`.
import { runInterleaved } from './interleaved.mjs';
import { runInOneProcess } from './one-process.mjs';
import { environment, markdownTable, summarise, writeResult } from './report.mjs';

export { nodeMajorOf, nodeVersionOf, readFlags } from './flags.mjs';
export { drawOrder, runInterleaved, pairedRatios } from './interleaved.mjs';
export { startLoad } from './load.mjs';
export { startServer, serveOn } from './server.mjs';
export { commandLine, environment, markdownTable, provenance, interval, summarise, writeResult } from './report.mjs';
export { runInOneProcess } from './one-process.mjs';
export { median, medianWithInterval, percentile } from './statistics.mjs';

/**
 * Runs, prints and writes bench/results/`name`.json (not with `--no-write`, nor part of a table with `--only`). The first
 * two variants are base and control.
 */
export function benchmark(name, variants, flags, options = {}) {
  return report(name, variants, flags, (chosen) => runInterleaved(chosen, flags, options));
}

/** The same with all variants in one process; see {@link runInOneProcess}. */
export function benchmarkInOneProcess(name, file, variants, flags, options = {}) {
  return report(name, variants, flags, (chosen) => runInOneProcess(file, chosen, flags, options));
}

async function report(name, variants, flags, run) {
  // Asked before the run: what is committed while it lasts is not what was measured.
  const where = environment();
  const wanted = ({ name }) => flags.only?.some((part) => name.includes(part)) ?? true;
  const chosen = variants.filter((variant, index) => index < 2 || wanted(variant));
  const result = summarise(name, chosen, flags, await run(chosen), where);
  if (flags.write && flags.only === null) writeResult(result);
  console.log(markdownTable(result));
  return result;
}
