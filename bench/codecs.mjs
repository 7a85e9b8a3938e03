// codecs: CPU and ratio of every codec and level on JSON, 1 KB to 5 MB: where the default levels and ceilings come from.
//
//   npm run bench -- codecs                       sizes up to 3 MB, without the slowest levels
//   npm run bench -- codecs --slow --rounds 5     with brotli 11 and zstd 19 (minutes)
//   node bench/codecs.mjs --sizes 10000,100000    no build is needed: it measures node:zlib alone
//
// What would make the numbers lie:
// - One body, JSON of a flight feed: prose compresses worse, repetitive JSON better. Compare columns, not projects.
// - Synchronous one-shots on one core: the pool adds a round trip to each, and cores to all.
// - The window is chosen by size, as the library does; with zlib's default brotli 9 costs 2.7 ms even for 1 KB.
import { parseArgs } from 'node:util';
import * as zlib from 'node:zlib';
import { flights } from './compression/flights.mjs';
import { environment, median, writeResult } from './harness/index.mjs';

const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: '1000,10000,100000,1000000,3000000' },
    rounds: { type: 'string', default: '7' },
    slow: { type: 'boolean', default: false },
    write: { type: 'boolean', default: true },
  },
  allowNegative: true,
});
const { constants } = zlib;

const LEVELS = {
  gzip: [1, 3, 4, 6, 9],
  br: [0, 1, 3, 4, 5, 6, ...(values.slow ? [9, 11] : [])],
  ...(zlib.zstdCompressSync === undefined ? {} : { zstd: [1, 3, 6, 9, 12, ...(values.slow ? [19] : [])] }),
};

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

const cells = [];
for (const size of values.sizes.split(',').map(Number)) {
  const body = Buffer.from(JSON.stringify(flights(size)));
  for (const [codec, levels] of Object.entries(LEVELS)) {
    for (const level of levels)
      cells.push({ codec, level, size, body, timesMs: [], bytes: encode(codec, level, body).byteLength });
  }
}
// All cells in turn, forwards and backwards: a slow second of the machine falls on all of them.
for (let round = 0; round < Number(values.rounds); round++) {
  for (const cell of cells) {
    const before = process.cpuUsage();
    // Enough of a small body that the clock can tell.
    const times = Math.max(1, Math.round(20_000 / cell.size));
    for (let i = 0; i < times; i++) encode(cell.codec, cell.level, cell.body);
    const { user, system } = process.cpuUsage(before);
    cell.timesMs.push((user + system) / 1_000 / times);
  }
  cells.reverse();
}

const rows = cells
  .map(({ codec, level, body, timesMs, bytes }) => ({
    codec,
    level,
    bodyBytes: body.byteLength,
    cpuMs: Number(median(timesMs).toFixed(3)),
    ratio: Number((body.byteLength / bytes).toFixed(2)),
  }))
  .sort((a, b) => a.codec.localeCompare(b.codec) || a.level - b.level || a.bodyBytes - b.bodyBytes);
const sizes = [...new Set(rows.map(({ bodyBytes }) => bodyBytes))].sort((a, b) => a - b);
console.log(
  `| CPU ms (ratio) | ${sizes.map((size) => `${size.toLocaleString('en')} B`).join(' | ')} |\n|---|${'---:|'.repeat(sizes.length)}`,
);
for (const [codec, levels] of Object.entries(LEVELS)) {
  for (const level of levels) {
    const cell = (size) => rows.find((row) => row.codec === codec && row.level === level && row.bodyBytes === size);
    console.log(
      `| ${codec} ${level} | ${sizes.map((size) => `${cell(size).cpuMs} (${cell(size).ratio})`).join(' | ')} |`,
    );
  }
}
const name = `codecs-node${process.versions.node.split('.')[0]}`;
const result = { name, ...environment(), rounds: Number(values.rounds), rows };
if (values.write) writeResult(result);
