// Rewrites what stands between `<!-- bench:<name> -->` and `<!-- /bench:<name> -->` in README.md from bench/results.
// `--check` changes nothing and fails when a table is not what the results say.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { interval, markdownTable, provenance } from '../bench/harness/index.mjs';

const results = readdirSync('bench/results')
  .filter((file) => file.endsWith('.json'))
  .map((file) => JSON.parse(readFileSync(`bench/results/${file}`, 'utf8')));

const resultOf = (name) => {
  const found = results.find((result) => result.name === name);
  if (found === undefined) throw new Error(`README.md asks for ${name}, and bench/results has no such result.`);
  return found;
};
const ran = ({ node, commit, command }) => `Node ${node.slice(1)}, commit ${commit}, \`${command}\`.`;

/** Tables that are not those of `benchmark()`. */
const OWN = {
  deferred() {
    const result = resultOf('deferred');
    const rows = result.cells.map(({ name, rows }) => {
      const row = (wanted) => rows.find(({ name }) => name === wanted);
      const { throughput, cpu } = row('ours');
      const figures = [throughput.blocking, throughput.article, cpu.blocking, cpu.article].map(interval);
      const envelope = row('envelope');
      return `| ${[name, ...figures, envelope === undefined ? '' : interval(envelope.throughput.blocking)].join(' | ')} |`;
    });
    return [
      '| sink, connections | req/s × awaiting | req/s × `tap(async)` | CPU × awaiting | CPU × `tap(async)` | in envelopes, req/s × awaiting |',
      '|---|---:|---:|---:|---:|---:|',
      ...rows,
      '',
      `Medians with their 95 % interval. ${ran(result)}`,
    ].join('\n');
  },
  blame() {
    const result = resultOf('blame');
    if (!result.passed) throw new Error('The run behind bench/results/blame.json failed.');
    const share = (part, whole) => `${((100 * part) / whole).toFixed(1)} % (${part} of ${whole})`;
    const rows = result.rows.map(({ node, blocks, reported, fair, named, located }) => {
      const cells = [share(reported, blocks), share(named, fair), share(located, named)];
      return `| ${[node, ...cells].join(' | ')} |`;
    });
    return [
      '| | reported | the right request | of those the right line |',
      '|---|---:|---:|---:|',
      ...rows,
      '',
      `Ten kinds of block of 130 ms among twelve loops of innocent requests, both adapters, both ways of telling requests apart; naming an innocent one once would have failed the run. ${ran(result)}`,
    ].join('\n');
  },
  'resources-cost'() {
    const result = resultOf('resources-cost');
    const loops = result.rows.map(({ name, sampleUs, readFileSyncUs, ratio }) => {
      const each = `${(sampleUs / 1e4).toFixed(4)} %, computed`;
      return `| in a loop, ${name} | ${[sampleUs, readFileSyncUs, interval(ratio), each].join(' | ')} | |`;
    });
    const servers = result.inService.map(
      ({ server, ratePerS, sampleUs, readFileSyncUs, ratio, samplePercentOfACore, featurePercentOfACore }) => {
        const name = `once a second in a server, ${server}${ratePerS === 0 ? '' : ` (${ratePerS} req/s)`}`;
        const shares = [`${samplePercentOfACore} %`, `${featurePercentOfACore} %`];
        return `| ${[name, sampleUs, readFileSyncUs, ratio, ...shares].join(' | ')} |`;
      },
    );
    return [
      '| | a sample, µs | `readFileSync(cpu.stat)`, µs | ratio | a sample each second, of one core | the whole feature, of one core |',
      '|---|---:|---:|---:|---:|---:|',
      ...loops,
      ...servers,
      '',
      ran(result),
    ].join('\n');
  },
  compression() {
    const result = resultOf('compression-feed-node20');
    const rows = result.tables[0].rows.map((row) => {
      const cells = [row.requestsPerS, interval(row.throughputRatio), row.cpuMsPerRequest, row.p50Ms];
      return `| ${[row.name.replace(/ perf/, ' nestjs-perf'), ...cells].join(' | ')} |`;
    });
    return [
      '| | req/s | × `@fastify/compress` | CPU ms / request | p50 ms |',
      '|---|---:|---:|---:|---:|',
      ...rows,
      '',
      `Medians, ratios with their 95 % interval. ${ran(result)}`,
    ].join('\n');
  },
};

/** One benchmark's table. Results `<name>-node20`, `<name>-node24` share one: a column of CPU ratios for each Node. */
function tableOf(name) {
  if (Object.hasOwn(OWN, name)) return OWN[name]();
  const one = results.find((result) => result.name === name);
  if (one !== undefined) return markdownTable(one);
  const byNode = results.filter((result) => result.name.replace(/-node\d+$/, '') === name);
  if (byNode.length === 0) throw new Error(`README.md asks for bench:${name}, and bench/results has no such result.`);
  const columns = byNode.flatMap(({ node }) => [`CPU ratio, Node ${major(node)}`, 'µs / request']);
  const rows = byNode[0].rows.map(({ name: variant }) => {
    const cells = byNode.flatMap(({ rows, name: result }) => {
      const row = rows.find((candidate) => candidate.name === variant);
      if (row === undefined) throw new Error(`bench/results/${result}.json has no row "${variant}".`);
      return [interval(row.cpuRatio), row.cpuUsPerRequest.toFixed(1)];
    });
    return `| ${[variant, ...cells].join(' | ')} |`;
  });
  const sources = byNode.map((result) => `- ${provenance(result)}`);
  return [
    `| | ${columns.join(' | ')} |`,
    `|---|${columns.map(() => '---:|').join('')}`,
    ...rows,
    '',
    'Ratio: CPU time per request against the first row, 95 % interval in brackets.',
    '',
    ...sources,
  ].join('\n');
}

function major(version) {
  return /^v(\d+)/.exec(version)[1];
}

const before = readFileSync('README.md', 'utf8');
let tables = 0;
const after = before.replaceAll(/(<!-- bench:([\w-]+) -->).*?(<!-- \/bench:\2 -->)/gs, (_, open, name, close) => {
  tables += 1;
  return `${open}\n\n${tableOf(name)}\n\n${close}`;
});
if (!process.argv.includes('--check')) writeFileSync('README.md', after);
else if (after !== before) {
  console.error('A table in README.md is not what bench/results says. Run: node scripts/readme-tables.mjs');
  process.exitCode = 1;
}
console.log(`${tables} tables of README.md from ${results.length} results.`);
