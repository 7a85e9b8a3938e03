// Every feature once, with a store on the given BullMQ and a client of the given ioredis.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { get, type IncomingHttpHeaders } from 'node:http';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { Deferrer, PerfModule, PerfService, ResourceSampler } from 'nestjs-perf';
import { bullmqStore } from 'nestjs-perf/bullmq';
import { check, until } from './check.js';
import { type Adapter, blamesTheBlocker, httpAdapterOf, recordsRight, serve, type Server } from './server.js';
import { FEED, OrdersController, SendReceipt, Sent } from './shop.js';

export async function alone(adapter: Adapter, redisPort: number): Promise<void> {
  const client = new Redis(redisPort, '127.0.0.1');
  await check('boots, serves, closes', async () => {
    const store = bullmqStore({ connection: client, queue: `matrix-${randomUUID()}` });
    const server = await serve(adapter, {
      metadata: { controllers: [OrdersController], providers: [SendReceipt] },
      perf: { defer: { store } },
    });
    await check('records, gate, deferred work', () => recordsRight(server));
    await check('block', () => blamesTheBlocker(server));
    await check('durable work', () => storesAndRuns(server));
    await check('compression', () => compresses(server));
    await check('resources', () => Promise.resolve(samples(server)));
    await server.app.close();
  });
  await client.quit();
}

/** The job travels through Redis and runs once. */
async function storesAndRuns({ app, url }: Server): Promise<void> {
  const id = randomUUID();
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${url}/orders`, { method: 'POST', headers, body: JSON.stringify({ id }) });
  assert.equal(response.status, 201);
  await until('the receipt', () => app.get(Sent).receipts.length > 0);
  assert.deepEqual(app.get(Sent).receipts, [{ orderId: id, attempt: 1 }]);
  const stats = app.get(Deferrer).stats();
  assert.equal(stats.stored, 1);
  assert.equal(stats.failed + stats.dropped, 0);
}

/** Sent encoded, decoded equal: a body that is whole, and one that streams. */
async function compresses({ app, url }: Server): Promise<void> {
  for (const [path, coding, decode] of [
    ['feed', 'br', brotliDecompressSync],
    ['export', 'gzip', gunzipSync],
  ] as const) {
    const { headers, body } = await encoded(`${url}/${path}`, coding);
    assert.equal(headers['content-encoding'], coding);
    assert.deepEqual(JSON.parse(decode(body).toString()), FEED);
  }
  assert.ok(app.get(PerfService).snapshot().compression!.bytesOut > 0);
}

/** Not by fetch, which decodes by itself and hides the header on some Nodes. */
function encoded(url: string, coding: string): Promise<{ headers: IncomingHttpHeaders; body: Buffer }> {
  return new Promise((resolve, reject) => {
    get(url, { headers: { 'accept-encoding': coding }, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => resolve({ headers: response.headers, body: Buffer.concat(chunks) }));
    }).on('error', reject);
  });
}

function samples({ app }: Server): void {
  const { process: own, cpu } = app.get(ResourceSampler).sample();
  assert.ok(own.rssBytes > 1e6 && own.cpuSeconds > 0);
  assert.ok(cpu.usageSeconds === null || cpu.usageSeconds >= 0);
}

/** The README's first example, and nothing more. */
export async function zeroConfiguration(adapter: Adapter): Promise<void> {
  @Module({ imports: [PerfModule.forRoot()] })
  class AppModule {}
  const app = await NestFactory.create(AppModule, httpAdapterOf(adapter), { logger: false, abortOnError: false });
  await app.listen(0, '127.0.0.1');
  assert.equal((await fetch(`${await app.getUrl()}/nothing`)).status, 404);
  await until('the request in the snapshot', () => app.get(PerfService).snapshot().routes[0]?.statuses['4xx'] === 1);
  await app.close();
}
