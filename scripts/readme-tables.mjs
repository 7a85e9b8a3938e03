// Rewrites what stands between `<!-- bench:<name> -->` and `<!-- /bench:<name> -->` in README.md and docs from bench/results.
// `--check` changes nothing and fails when a table is not what the results say.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { interval, provenance } from '../bench/harness/index.mjs';

const results = readdirSync('bench/results')
  .filter((file) => file.endsWith('.json'))
  .map((file) => JSON.parse(readFileSync(`bench/results/${file}`, 'utf8')));

const readResult = (name) => {
  const found = results.find((result) => result.name === name);
  if (found === undefined) throw new Error(`A page asks for ${name}, and bench/results has no such result.`);
  return found;
};
const ran = ({ node, commit, command }) => `Node ${node.slice(1)}, commit ${commit}, \`${command}\`.`;
const markdown = (head, rows, ...below) => {
  const lines = [head, head.map((_, column) => (column === 0 ? '---' : '---:')), ...rows];
  return [...lines.map((cells) => `| ${cells.join(' | ')} |`), '', ...below].join('\n');
};

/** The rows that somebody who decides compares: their result, and their name in it. */
const COST = [
  ['overhead', 'bare Nest + Fastify'],
  ['overhead', 'nestjs-perf: latency only'],
  ['overhead', 'nestjs-perf: all defaults'],
  ['peers', 'prom-client interceptor'],
  ['peers', 'nestjs-pino'],
  ['peers', 'OpenTelemetry http'],
  ['express', 'bare Nest + Express'],
  ['express', 'nestjs-perf: all defaults'],
];

const TABLES = {
  overhead: () => byNode('overhead'),
  peers: () => byNode('peers'),
  express: () => byNode('express'),
  upstream: () => byNode('upstream'),
  'dashboard-page': () => byNode('dashboard-page'),
  'dashboard-peers': () => byNode('dashboard-peers'),
  cost() {
    const nodes = ['node20', 'node24'];
    const rows = COST.map(([name, variant]) => {
      const cells = nodes.map((node) => {
        if (!results.some((result) => result.name === `${name}-${node}`)) return 'not measured';
        const row = readResult(`${name}-${node}`).rows.find((one) => one.name === variant);
        if (row === undefined) throw new Error(`The result ${name}-${node} has no row "${variant}".`);
        const cpu = `${row.cpuUsPerRequest.toFixed(0)} µs`;
        return row.cpuRatio.low === row.cpuRatio.high ? cpu : `${cpu}, × ${interval(row.cpuRatio)}`;
      });
      return [name === 'express' && !variant.includes('Express') ? `${variant}, Express` : variant, ...cells];
    });
    return markdown(['', 'Node 20', 'Node 24'], rows);
  },
  deferred() {
    const result = readResult('deferred');
    const head = [
      'sink, connections',
      'req/s × awaiting',
      'req/s × `tap(async)`',
      'CPU × awaiting',
      'CPU × `tap(async)`',
    ];
    const rows = [...new Set(result.rows.map(({ cell }) => cell))].map((cell) => {
      const findRow = (wanted) => result.rows.find((row) => row.cell === cell && row.name === wanted);
      const { throughputRatio, throughputRatioToArticle, cpuRatio, cpuRatioToArticle } = findRow('ours');
      const figures = [throughputRatio, throughputRatioToArticle, cpuRatio, cpuRatioToArticle].map(interval);
      // Runs before 0.3 have envelopes.
      const batch = findRow('batch') ?? findRow('envelope');
      return [cell, ...figures, batch === undefined ? '' : interval(batch.throughputRatio)];
    });
    return markdown(
      [...head, 'many in a job, req/s × awaiting'],
      rows,
      `Medians with their 95 % interval. ${ran(result)}`,
    );
  },
  blame() {
    const result = readResult('blame');
    if (!result.passed) throw new Error('The run behind bench/results/blame.json failed.');
    const share = (part, whole) => `${((100 * part) / whole).toFixed(1)} % (${part} of ${whole})`;
    const rows = result.rows.map(({ node, nest, adapter, blocks, reported, fair, named, located, innocents }) => {
      const where = `${node}, Nest ${nest}, ${adapter}`;
      return [where, share(reported, blocks), share(named, fair), share(located, fair), innocents];
    });
    return markdown(
      ['', 'reported', 'the right request', 'the right line', 'innocents named'],
      rows,
      `Blocks of 130 ms among loops of innocent requests; those during which the machine kept the process from running are counted as reported alone. ${ran(result)}`,
    );
  },
  cache() {
    const result = readResult('cache-node24');
    const rows = result.rows.map(({ name, cpuUsPerHit, interval: [low, high] }) => [
      name,
      `${cpuUsPerHit.toFixed(3)} (${low.toFixed(3)}–${high.toFixed(3)})`,
    ]);
    const above = 'The first row is the loop and its `await`; it is taken off the others.';
    return markdown(['', 'CPU µs a hit'], rows, `${above} Medians with their 95 % interval. ${ran(result)}`);
  },
  footprint() {
    const result = readResult('footprint-node24');
    const rows = result.rows.map((row, index) => {
      const cell = (quantity) => (index === 0 ? '' : `, ${more(row[`${quantity}More`])}`);
      return [row.name, ...['bootCpuMs', 'restMb', 'loadedMb'].map((name) => `${row[name]}${cell(name)}`)];
    });
    const { options, importCpuMs } = result;
    const head = ['', 'CPU ms until it listens', 'RSS MB at rest', `RSS MB after ${options.requests} requests`];
    const above = `Medians of ${options.generations} processes each; what is added has its 95 % interval.`;
    const imported = `The import behind Nest's own takes ${importCpuMs.median} ms of CPU (${importCpuMs.low} to ${importCpuMs.high}).`;
    return markdown(head, rows, `${above} ${imported} ${ran(result)}`);
  },
  compression() {
    const result = readResult('compression-feed-node20');
    const rows = result.rows.map(({ name, requestsPerS, throughputRatio, cpuUsPerRequest, p50Ms }) => {
      const cpuMs = (cpuUsPerRequest / 1_000).toFixed(2);
      return [name.replace(/ perf/, ' nestjs-perf'), requestsPerS, interval(throughputRatio), cpuMs, p50Ms];
    });
    const head = ['', 'req/s', '× `@fastify/compress`', 'CPU ms / request', 'p50 ms'];
    return markdown(head, rows, `Medians, ratios with their 95 % interval. ${ran(result)}`);
  },
};

const withSign = (number) => (number < 0 ? `−${-number}` : `+${number}`);
const more = ({ median, low, high }) => `${withSign(median)} (${withSign(low)} to ${withSign(high)})`;

/** Results `<name>-node20`, `<name>-node24` share a table. */
function byNode(name) {
  const all = results.filter((result) => result.name.replace(/-node\d+$/, '') === name);
  if (all.length === 0) throw new Error(`README.md asks for bench:${name}, and bench/results has no such result.`);
  const hasP99 = all.every(({ rows }) => rows.every(({ p99Ratio }) => p99Ratio !== undefined));
  const head = all.flatMap(({ node }) => {
    const columns = [`CPU ratio, Node ${/^v(\d+)/.exec(node)[1]}`, 'µs / request', 'p50 ms'];
    return hasP99 ? [...columns, 'p99 ratio'] : columns;
  });
  const rows = all[0].rows.map(({ name: variant }) => {
    const cells = all.flatMap((result) => {
      const row = result.rows.find((candidate) => candidate.name === variant);
      if (row === undefined) throw new Error(`bench/results/${result.name}.json has no row "${variant}".`);
      const cells = [interval(row.cpuRatio), row.cpuUsPerRequest.toFixed(1), row.p50Ms.toFixed(2)];
      return hasP99 ? [...cells, interval(row.p99Ratio)] : cells;
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

let tables = 0;
const pages = ['README.md', ...readdirSync('docs').map((file) => `docs/${file}`)].filter((file) =>
  file.endsWith('.md'),
);
for (const page of pages) {
  const before = readFileSync(page, 'utf8');
  const after = before.replaceAll(/(<!-- bench:([\w-]+) -->).*?(<!-- \/bench:\2 -->)/gs, (_, open, name, close) => {
    if (!Object.hasOwn(TABLES, name)) throw new Error(`${page} asks for bench:${name}; there is no such table.`);
    tables += 1;
    return `${open}\n\n${TABLES[name]().trimEnd()}\n\n${close}`;
  });
  if (after === before) continue;
  if (process.argv.includes('--check')) {
    console.error(`A table in ${page} is not what bench/results says. Run: node scripts/readme-tables.mjs`);
    process.exitCode = 1;
  } else writeFileSync(page, after);
}
console.log(`${tables} tables of ${pages.length} pages from ${results.length} results.`);
