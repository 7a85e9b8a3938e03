// The shared benchmark harness. A benchmark names its variants; this starts, loads, measures and reports them:
//
//   const flags = readFlags();
//   const variants = [{ name: 'bare', file }, { name: 'bare again', file }, { name: 'ours', file, args: ['ours'] }];
//   await benchmark('my-bench', variants, flags, { request: { path: '/' } });
//
// The variant's script listens on a port of its choice and then calls `serveOn(port)`.
import { readNodeVersion } from './flags.mjs';
import { runInterleaved } from './interleaved.mjs';
import { environment, markdownTable, provenance, summarise, writeResult } from './report.mjs';

export { readNodeMajor, readNodeVersion, readFlags } from './flags.mjs';
export { runInterleaved } from './interleaved.mjs';
export { startLoad } from './load.mjs';
export { startServer, serveOn } from './server.mjs';
export {
  commandLine,
  environment,
  interval,
  provenance,
  pairRatio,
  refuseUncommittedChanges,
  summarise,
  writeResult,
} from './report.mjs';
export { median, medianWithInterval } from './statistics.mjs';

/**
 * Runs, prints and writes bench/results/`name`.json (not with `--no-write`, nor part of a table with `--only`). The first
 * two variants are base and control; `options` as for `runInterleaved`.
 */
export async function benchmark(name, variants, flags, options = {}) {
  const where = environment(readNodeVersion(flags.node));
  const wanted = ({ name }) => flags.only?.some((part) => name.includes(part)) ?? true;
  const chosen = variants.filter((variant, index) => index < 2 || wanted(variant));
  const result = { name, ...where, ...summarise(chosen, flags, await runInterleaved(chosen, flags, options), options) };
  if (flags.write) writeResult(result);
  console.log(`${name}\n${markdownTable(result.rows)}\n\n${provenance(result)}`);
}
