import assert from 'node:assert/strict';
import { type AddressInfo } from 'node:net';
import { type INestApplication, Module, type ModuleMetadata, type NestApplicationOptions } from '@nestjs/common';
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import {
  type BlockRecord,
  loggerSink,
  PerfModule,
  type PerfModuleOptions,
  PerfService,
  type RequestRecord,
  staticGates,
} from 'nestjs-perf';
import { memorySink, settle } from 'nestjs-perf/testing';
import { until } from './check.js';
import { Sent, ShopController } from './shop.js';

export type Adapter = 'fastify' | 'express';

export const httpAdapterOf = (adapter: Adapter): AbstractHttpAdapter =>
  (adapter === 'fastify' ? new FastifyAdapter() : new ExpressAdapter()) as AbstractHttpAdapter;

export interface Server {
  app: INestApplication;
  url: string;
  requests: () => Promise<RequestRecord[]>;
  blocks: () => BlockRecord[];
}

export interface ServerOptions {
  metadata?: ModuleMetadata;
  perf?: PerfModuleOptions;
  nest?: NestApplicationOptions;
  /** Like main.ts: before `listen()`. */
  prepare?: (app: INestApplication) => unknown;
}

export async function serve(adapter: Adapter, options: ServerOptions = {}): Promise<Server> {
  const { metadata = {}, perf = {}, nest = {}, prepare } = options;
  const sink = memorySink();
  @Module({
    imports: [
      PerfModule.forRoot({
        experiments: { gates: staticGates({ fast: true }) },
        sinks: [loggerSink(), sink],
        ...perf,
      }),
      ...(metadata.imports ?? []),
    ],
    controllers: [ShopController, ...(metadata.controllers ?? [])],
    providers: [Sent, ...(metadata.providers ?? [])],
  })
  class AppModule {}

  const app = await NestFactory.create(AppModule, httpAdapterOf(adapter), {
    logger: false,
    abortOnError: false,
    ...nest,
  });
  await prepare?.(app);
  await app.listen(0, '127.0.0.1');
  const { port } = app.getHttpServer().address() as AddressInfo;
  return {
    app,
    url: `http://127.0.0.1:${port}`,
    requests: async () => {
      await settle(app);
      const records = sink.records.filter((record): record is RequestRecord => record.kind === 'request');
      // A record that waits for the verdict on a block comes after later ones.
      return records.sort((a, b) => a.startedAt - b.startedAt);
    },
    blocks: () => sink.records.filter((record): record is BlockRecord => record.kind === 'block'),
  };
}

/** What must be recorded whatever stands beside: true routes and statuses, the gate's answer, work after the response. */
export async function recordsRight({ app, url, requests }: Server): Promise<void> {
  const before = (await requests()).length;
  const audited = app.get(Sent).audits.length;
  assert.deepEqual(await (await fetch(`${url}/users/7`)).json(), { id: '7', fast: true });
  assert.equal((await fetch(`${url}/nowhere/${Math.random()}`)).status, 404);
  const records = (await requests()).slice(before);
  assert.deepEqual(
    records.map(({ method, route, status, handler, variants }) => ({ method, route, status, handler, variants })),
    [
      { method: 'GET', route: '/users/:id', status: 200, handler: 'ShopController.findOne', variants: { fast: 'on' } },
      { method: 'GET', route: '', status: 404, handler: null, variants: null },
    ],
  );
  for (const { durationMs } of records) assert.ok(durationMs > 0 && durationMs < 5_000, `${durationMs} ms`);
  assert.deepEqual(app.get(Sent).audits.slice(audited), ['7']);
  const row = app
    .get(PerfService)
    .snapshot()
    .routes.find(({ route }) => route === '/users/:id');
  assert.ok(row !== undefined && row.count >= 1 && row.durationMs.p50 > 0, 'no figures in the snapshot');
}

/** The block is the blocking request's, at its line, and nobody else's. On a starved machine one look may come too late. */
export async function blamesTheBlocker({ url, requests, blocks }: Server): Promise<void> {
  await until('a block attributed to GET /block', async () => {
    await (await fetch(`${url}/block`)).text();
    await requests();
    return blocks().some(({ request }) => request !== null);
  });
  for (const { request } of blocks())
    assert.equal(request?.route ?? '/block', '/block', 'an innocent request is blamed');
  const block = blocks().find(({ request }) => request !== null)!;
  assert.ok(block.durationMs >= 100 && block.location?.includes('shop'), `${block.durationMs} ms at ${block.location}`);
  assert.match(block.curl ?? '', /^curl .*\/block'/);
}
