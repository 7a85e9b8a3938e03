// Rewrites what stands between `<!-- bench:<name> -->` and `<!-- /bench:<name> -->` in README.md from bench/results.
// `--check` changes nothing and fails when a table is not what the results say.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { interval, provenance } from '../bench/harness/index.mjs';

const results = readdirSync('bench/results')
  .filter((file) => file.endsWith('.json'))
  .map((file) => JSON.parse(readFileSync(`bench/results/${file}`, 'utf8')));

const resultOf = (name) => {
  const found = results.find((result) => result.name === name);
  if (found === undefined) throw new Error(`README.md asks for ${name}, and bench/results has no such result.`);
  return found;
};
const ran = ({ node, commit, command }) => `Node ${node.slice(1)}, commit ${commit}, \`${command}\`.`;
const markdown = (head, rows, ...below) => {
  const lines = [head, head.map((_, column) => (column === 0 ? '---' : '---:')), ...rows];
  return [...lines.map((cells) => `| ${cells.join(' | ')} |`), '', ...below].join('\n');
};

const TABLES = {
  overhead: () => byNode('overhead'),
  express: () => byNode('express'),
  deferred() {
    const result = resultOf('deferred');
    const head = [
      'sink, connections',
      'req/s × awaiting',
      'req/s × `tap(async)`',
      'CPU × awaiting',
      'CPU × `tap(async)`',
    ];
    const rows = [...new Set(result.rows.map(({ cell }) => cell))].map((cell) => {
      const rowOf = (wanted) => result.rows.find((row) => row.cell === cell && row.name === wanted);
      const { throughputRatio, throughputRatioToArticle, cpuRatio, cpuRatioToArticle } = rowOf('ours');
      const figures = [throughputRatio, throughputRatioToArticle, cpuRatio, cpuRatioToArticle].map(interval);
      const envelope = rowOf('envelope');
      return [cell, ...figures, envelope === undefined ? '' : interval(envelope.throughputRatio)];
    });
    return markdown(
      [...head, 'in envelopes, req/s × awaiting'],
      rows,
      `Medians with their 95 % interval. ${ran(result)}`,
    );
  },
  blame() {
    const result = resultOf('blame');
    if (!result.passed) throw new Error('The run behind bench/results/blame.json failed.');
    const share = (part, whole) => `${((100 * part) / whole).toFixed(1)} % (${part} of ${whole})`;
    const rows = result.rows.map(({ node, blocks, reported, fair, named, located }) => {
      return [node, share(reported, blocks), share(named, fair), share(located, named)];
    });
    return markdown(
      ['', 'reported', 'the right request', 'of those the right line'],
      rows,
      `Ten kinds of block of 130 ms among twelve loops of innocent requests, both adapters, both ways of telling requests apart; naming an innocent one once would have failed the run. ${ran(result)}`,
    );
  },
  compression() {
    const result = resultOf('compression-feed-node20');
    const rows = result.rows.map(({ name, requestsPerS, throughputRatio, cpuUsPerRequest, p50Ms }) => {
      const cpuMs = (cpuUsPerRequest / 1_000).toFixed(2);
      return [name.replace(/ perf/, ' nestjs-perf'), requestsPerS, interval(throughputRatio), cpuMs, p50Ms];
    });
    const head = ['', 'req/s', '× `@fastify/compress`', 'CPU ms / request', 'p50 ms'];
    return markdown(head, rows, `Medians, ratios with their 95 % interval. ${ran(result)}`);
  },
};

/** Results `<name>-node20`, `<name>-node24` share a table. */
function byNode(name) {
  const all = results.filter((result) => result.name.replace(/-node\d+$/, '') === name);
  if (all.length === 0) throw new Error(`README.md asks for bench:${name}, and bench/results has no such result.`);
  const head = all.flatMap(({ node }) => [`CPU ratio, Node ${/^v(\d+)/.exec(node)[1]}`, 'µs / request', 'p50, p99 ms']);
  const rows = all[0].rows.map(({ name: variant }) => {
    const cells = all.flatMap((result) => {
      const row = result.rows.find((candidate) => candidate.name === variant);
      if (row === undefined) throw new Error(`bench/results/${result.name}.json has no row "${variant}".`);
      const latency = `${row.p50Ms.toFixed(2)}, ${row.p99Ms.toFixed(2)}`;
      return [interval(row.cpuRatio), row.cpuUsPerRequest.toFixed(1), latency];
    });
    return [variant, ...cells];
  });
  return markdown(
    ['', ...head],
    rows,
    'Ratio: CPU time per request against the first row, 95 % interval in brackets.',
    '',
    ...all.map((result) => `- ${provenance(result)}`),
  );
}

const before = readFileSync('README.md', 'utf8');
let tables = 0;
const after = before.replaceAll(/(<!-- bench:([\w-]+) -->).*?(<!-- \/bench:\2 -->)/gs, (_, open, name, close) => {
  if (!Object.hasOwn(TABLES, name)) throw new Error(`README.md asks for bench:${name}; there is no such table.`);
  tables += 1;
  return `${open}\n\n${TABLES[name]()}\n\n${close}`;
});
if (!process.argv.includes('--check')) writeFileSync('README.md', after);
else if (after !== before) {
  console.error('A table in README.md is not what bench/results says. Run: node scripts/readme-tables.mjs');
  process.exitCode = 1;
}
console.log(`${tables} tables of README.md from ${results.length} results.`);
