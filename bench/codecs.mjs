// codecs: CPU and ratio of every codec and level on JSON, 1 KB to 5 MB: where the default levels and ceilings come from.
//
//   npm run bench -- codecs                       1 KB to 3 MB: 60 rounds in 3 processes, the slowest levels once in each
//   npm run bench -- codecs --node 24             with zstd
//   npm run bench -- codecs --sizes 10000,100000 --rounds 6 --generations 1 --no-write
//
// What would make the numbers lie:
// - One body, JSON of a flight feed: prose compresses worse, repetitive JSON better. Compare columns, not projects.
// - Synchronous one-shots on one core: the pool adds a round trip to each, and cores to all.
// - The window is chosen by size, as the library does; with zlib's default brotli 9 costs 2.7 ms even for 1 KB.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import * as zlib from 'node:zlib';
import { flights } from './compression/flights.mjs';
import { environment, median, nodeMajorOf, nodeVersionOf, readFlags, writeResult } from './harness/index.mjs';

const { constants } = zlib;

const LEVELS = {
  gzip: [1, 3, 4, 6, 9],
  br: [0, 1, 3, 4, 5, 6, 9, 11],
  ...(zlib.zstdCompressSync === undefined ? {} : { zstd: [1, 3, 6, 9, 12, 19] }),
};
/** Seconds for one large body. */
const isSlow = ({ codec, level }) => (codec === 'br' && level > 6) || (codec === 'zstd' && level > 12);

function encode(codec, level, body) {
  if (codec === 'gzip') return zlib.gzipSync(body, { level });
  if (codec === 'zstd') return zlib.zstdCompressSync(body, { params: { [constants.ZSTD_c_compressionLevel]: level } });
  const window = Math.min(Math.max(Math.ceil(Math.log2(body.byteLength)), 16), 22);
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: level,
    [constants.BROTLI_PARAM_LGWIN]: window,
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
    [constants.BROTLI_PARAM_SIZE_HINT]: body.byteLength,
  };
  return zlib.brotliCompressSync(body, { params });
}

/** One process: all cells in turn, forwards and backwards, so that a slow second of the machine falls on all of them. */
function measure(sizes, rounds) {
  const cells = [];
  for (const size of sizes) {
    const body = Buffer.from(JSON.stringify(flights(size)));
    for (const [codec, levels] of Object.entries(LEVELS)) {
      for (const level of levels) cells.push({ codec, level, size, body, timesMs: [], bytes: 0 });
    }
  }
  for (let round = 0; round < rounds; round++) {
    for (const cell of cells) if (round === 0 || !isSlow(cell)) run(cell);
    cells.reverse();
  }
  return cells.map(({ codec, level, body, bytes, timesMs }) => ({
    codec,
    level,
    bodyBytes: body.byteLength,
    bytes,
    timesMs,
  }));
}

function run(cell) {
  const before = process.cpuUsage();
  // Enough of a small body that the clock can tell.
  const times = isSlow(cell) ? 1 : Math.max(1, Math.round(20_000 / cell.size));
  for (let i = 0; i < times; i++) cell.bytes = encode(cell.codec, cell.level, cell.body).byteLength;
  const { user, system } = process.cpuUsage(before);
  cell.timesMs.push((user + system) / 1_000 / times);
}

function summarise(generations) {
  return generations[0]
    .map(({ codec, level, bodyBytes, bytes }, index) => ({
      codec,
      level,
      bodyBytes,
      cpuMs: Number(median(generations.flatMap((cells) => cells[index].timesMs)).toFixed(3)),
      ratio: Number((bodyBytes / bytes).toFixed(2)),
    }))
    .sort((a, b) => a.codec.localeCompare(b.codec) || a.level - b.level || a.bodyBytes - b.bodyBytes);
}

function markdown(rows) {
  const sizes = [...new Set(rows.map(({ bodyBytes }) => bodyBytes))].sort((a, b) => a - b);
  const lines = [...new Set(rows.map(({ codec, level }) => `${codec} ${level}`))].map((name) => {
    const cells = rows.filter(({ codec, level }) => `${codec} ${level}` === name);
    return `| ${name} | ${cells.map(({ cpuMs, ratio }) => `${cpuMs} (${ratio})`).join(' | ')} |`;
  });
  const head = sizes.map((size) => `${size.toLocaleString('en')} B`).join(' | ');
  return `| CPU ms (ratio) | ${head} |\n|---|${'---:|'.repeat(sizes.length)}\n${lines.join('\n')}`;
}

const flags = readFlags({
  sizes: { type: 'string', default: '1000,10000,100000,1000000,3000000' },
  generations: { type: 'string', default: '3' },
  measure: { type: 'boolean', default: false },
});
if (flags.measure) {
  process.stdout.write(JSON.stringify(measure(flags.sizes.split(',').map(Number), flags.rounds)));
} else {
  const where = environment(nodeVersionOf(flags.node));
  const rounds = Math.max(1, Math.round(flags.rounds / flags.generations));
  const own = [fileURLToPath(import.meta.url), '--measure', '--sizes', flags.sizes, '--rounds', String(rounds)];
  const generations = Array.from({ length: flags.generations }, () => {
    return JSON.parse(execFileSync(flags.node, own, { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 }));
  });
  const rows = summarise(generations);
  console.log(markdown(rows));
  const major = nodeMajorOf(flags.node);
  const options = { rounds: rounds * flags.generations, generations: flags.generations };
  if (flags.write) writeResult({ name: `codecs-node${major}`, ...where, options, rows });
}
