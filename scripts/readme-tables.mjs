// Rewrites what stands between `<!-- bench:<name> -->` and `<!-- /bench:<name> -->` in README.md and docs from bench/results.
// `--check` changes nothing and fails when a table is not what the results say.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { interval, markdownTable, provenance } from '../bench/harness/index.mjs';

const results = readdirSync('bench/results')
  .filter((file) => file.endsWith('.json'))
  .map((file) => JSON.parse(readFileSync(`bench/results/${file}`, 'utf8')));

const resultOf = (name) => {
  const found = results.find((result) => result.name === name);
  if (found === undefined) throw new Error(`A page asks for ${name}, and bench/results has no such result.`);
  return found;
};
const ran = ({ node, commit, command }) => `Node ${node.slice(1)}, commit ${commit}, \`${command}\`.`;

/** The rows that somebody who decides compares: their result, their name in it, and another one where that says too little. */
const COST = [
  ['overhead', 'bare Nest + Fastify'],
  ['overhead', 'bare Nest + Fastify again'],
  ['overhead', 'nestjs-perf: all defaults'],
  ['overhead', 'prom-client interceptor'],
  ['overhead', 'nestjs-pino'],
  ['overhead', 'OpenTelemetry http'],
  ['express', 'bare Nest + Express'],
  ['express', 'nestjs-perf: all defaults', 'nestjs-perf: all defaults, Express'],
];
/** Written on the shortest line that says the same. */
const shortRatio = ({ median, low, high }) =>
  low === 1 && high === 1 ? '1' : `${median.toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`;

/** Tables that are not those of `benchmark()`. */
const OWN = {
  cost() {
    const nodes = ['node20', 'node24'];
    const rows = COST.map(([name, variant, shown = variant]) => {
      const of = nodes.map((node) => resultOf(`${name}-${node}`).rows.find((row) => row.name === variant));
      if (of.includes(undefined)) throw new Error(`The results of ${name} have no row "${variant}".`);
      const cells = of.flatMap(({ cpuRatio, p50Ms, p99Ms }) => [
        shortRatio(cpuRatio),
        `${p50Ms.toFixed(1)} / ${p99Ms.toFixed(1)}`,
      ]);
      return `| ${[shown, ...cells].join(' | ')} |`;
    });
    const columns = nodes.flatMap((node) => [`CPU, Node ${node.slice(4)}`, 'p50 / p99 ms']);
    return [`| | ${columns.join(' | ')} |`, `|---|${columns.map(() => '---:|').join('')}`, ...rows].join('\n');
  },
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
  if (byNode.length === 0) throw new Error(`A page asks for bench:${name}, and bench/results has no such result.`);
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

let tables = 0;
const pages = ['README.md', ...readdirSync('docs').map((file) => `docs/${file}`)].filter((file) =>
  file.endsWith('.md'),
);
for (const page of pages) {
  const before = readFileSync(page, 'utf8');
  const after = before.replaceAll(/(<!-- bench:([\w-]+) -->).*?(<!-- \/bench:\2 -->)/gs, (_, open, name, close) => {
    tables += 1;
    return `${open}\n\n${tableOf(name)}\n\n${close}`;
  });
  if (after === before) continue;
  if (process.argv.includes('--check')) {
    console.error(`A table in ${page} is not what bench/results says. Run: node scripts/readme-tables.mjs`);
    process.exitCode = 1;
  } else writeFileSync(page, after);
}
console.log(`${tables} tables of ${pages.length} pages from ${results.length} results.`);
