// durable-answer: how much later one request at a time is answered because its work is on disk first, against one write and fdatasync.
//
//   npm run bench -- durable-answer --rounds 600
//
// Each round measures, in a random order: an append of the same bytes with fdatasync on the same disk, an answer of a route without
// work, and one of a route with durable work (`spillPath`; Redis is there, and has it a few milliseconds later).
//
// Sources of error, and how each is excluded:
// - A disk that lies about fdatasync, as tmpfs does: then all of them are microseconds, and the run refuses.
// - Work of the request before that is still being stored: each round waits until it is struck off.
import { mkdtempSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Post } from '@nestjs/common';
import { Deferrer, DeferWork, DurableWork, PerfModule } from 'nestjs-perf';
import { bullmqStore } from 'nestjs-perf/bullmq';
import { startRedis } from '../scripts/redis.mjs';
import { environment, medianWithInterval, readNodeVersion, readFlags, writeResult } from './harness/index.mjs';
import { decorate, decorateMethod, readPort, serveNest } from './overhead/application.mjs';

const flags = readFlags({ rounds: { type: 'string', default: '600' }, folder: { type: 'string', default: '.' } });
const folder = mkdtempSync(join(flags.folder, 'durable-answer-'));
const redis = await startRedis({ own: true });
const order = { id: 'o-1', total: 99, currency: 'EUR', items: [{ sku: 'A-1', quantity: 2 }] };

class SaveOrder {
  run() {}
}
DurableWork('save-order')(SaveOrder);
class OrdersController {
  plain() {
    return order;
  }
  durable() {
    return order;
  }
}
decorateMethod(OrdersController, 'plain', Post('plain'));
decorateMethod(OrdersController, 'durable', Post('durable'), DeferWork(SaveOrder, { durable: true }));
decorate(OrdersController, Controller());
const connection = { host: '127.0.0.1', port: redis.port };
const store = bullmqStore({ connection, queue: 'light', worker: false, spillPath: join(folder, 'spill') });
const app = await serveNest({
  imports: [PerfModule.forRoot({ eventLoop: false, sinks: [], defer: { store } })],
  controllers: [OrdersController],
  providers: [SaveOrder],
});
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const raw = await open(join(folder, 'raw'), 'a');
const line = `${JSON.stringify({ order, head: 'x'.repeat(300) })}\n`;

const ask = (path) =>
  new Promise((resolve, reject) => {
    const sent = request({ port: readPort(app), method: 'POST', path, agent }, (response) => {
      response.resume().once('end', resolve);
    });
    sent.once('error', reject).end();
  });
const measures = {
  async sync() {
    await raw.appendFile(line);
    await raw.datasync();
  },
  plain: () => ask('/plain'),
  durable: () => ask('/durable'),
};
const timesMs = { sync: [], plain: [], durable: [] };
const differences = [];
try {
  for (let round = -100; round < Number(flags.rounds); round++) {
    const once = {};
    for (const name of Object.keys(measures).toSorted(() => Math.random() - 0.5)) {
      const startedMs = performance.now();
      await measures[name]();
      once[name] = performance.now() - startedMs;
      await app.get(Deferrer).idle();
      await delay(5);
    }
    if (round < 0) continue;
    for (const [name, ms] of Object.entries(once)) timesMs[name].push(ms);
    differences.push((once.durable - once.plain) / once.sync);
  }
} finally {
  await app.close();
  await raw.close();
  await redis.stop();
  rmSync(folder, { recursive: true });
}
const rows = Object.entries(timesMs).map(([name, times]) => ({ name, ms: medianWithInterval([times]) }));
rows.push({ name: '(durable - plain) / sync', ratio: medianWithInterval([differences]) });
if (rows[0].ms.median < 0.05) throw new Error('This disk syncs nothing: name a folder on another with --folder.');
console.table(rows.map(({ name, ms, ratio }) => ({ name, ...(ms ?? ratio) })));
if (flags.write) {
  writeResult({
    name: 'durable-answer',
    ...environment(readNodeVersion(flags.node)),
    options: { rounds: flags.rounds },
    rows,
  });
}
process.exit();
