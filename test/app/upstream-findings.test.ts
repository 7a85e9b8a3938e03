import { tracingChannel } from 'node:diagnostics_channel';
import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Get, Inject, Param, Query, type OnModuleInit } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { PerfService, SkipPerf, type PerfModuleOptions } from '../../src/index.js';
import { Cached, cache } from '../../src/entries/cache.js';
import { either, startApp, type TestApp } from '../fixtures/app.js';

/** As ioredis publishes a call. */
const tell = (name: string, call: object, answer: Promise<unknown>): Promise<unknown> =>
  tracingChannel(name).tracePromise(() => answer, { serverAddress: 'db', serverPort: 1, ...call });
/** Far above what a request takes beside its calls. */
const answered = (): Promise<void> => delay(20);
const FIELDS = ['name', 'mail', 'age'];
const hget = (field: string, answer: Promise<unknown>): Promise<unknown> =>
  tell('ioredis:command', { command: 'hget', args: ['user', field] }, answer);
async function hgets(): Promise<void> {
  for (const field of FIELDS) await hget(field, answered());
}

/** As mysql2's connection looks from outside. */
const mysql = {
  config: { host: 'db' },
  query: (_sql: string, done: (error: null) => void) => void setTimeout(done, 20, null),
  execute() {},
  beginTransaction() {},
  unprepare() {},
};

@Controller()
class AlikeController implements OnModuleInit {
  constructor(@Inject(PerfService) private readonly perf: PerfService) {}

  onModuleInit() {
    this.perf.watch(mysql);
  }

  @Get('three')
  async three() {
    await hgets();
    return {};
  }

  /** A pipeline looks the same. */
  @Get('together')
  async together() {
    const answer = answered();
    await Promise.all(FIELDS.map((field) => hget(field, answer)));
    return {};
  }

  @Get('many')
  async many() {
    const ids = Array.from({ length: 48 }, (_, id) => String(id));
    await Promise.all(ids.map((id) => hget(id, answered())));
    return {};
  }

  @Get('rarely')
  async rarely(@Query('asks') asks?: string) {
    if (asks !== undefined) await hgets();
    return {};
  }

  @Get('skipped')
  @SkipPerf()
  async skipped() {
    await hgets();
    return {};
  }

  @Get('statements')
  async statements() {
    for (const table of ['a', 'b', 'c', 'd', 'e'])
      await new Promise((done) => mysql.query(`SELECT * FROM ${table}`, done));
    return {};
  }
}

@Controller()
class ValuesController {
  /** As MikroORM and Sequelize write it. */
  @Get('values')
  async values() {
    for (const id of [1, 22, 3.5])
      await new Promise((done) => mysql.query(`SELECT * FROM a0 WHERE id = ${id} AND name = 'it''s ${id}'`, done));
    return {};
  }
}

class Catalogue {
  @Cached({ ttlMs: 60_000, batch: true })
  async prices(ids: readonly string[]): Promise<readonly number[]> {
    await delay(1);
    return ids.map((id) => id.length);
  }
}

@Controller()
class CachedController {
  constructor(@Inject(Catalogue) private readonly catalogue: Catalogue) {}

  @Get('prices/:first')
  prices(@Param('first') first: string) {
    return this.catalogue.prices([first, `${first}b`, `${first}c`, `${first}d`]);
  }
}

describe.each(either('express'))('findings, on %s', (adapter) => {
  let running: TestApp;
  const start = async (perf: PerfModuleOptions = {}): Promise<void> => {
    const controllers = [AlikeController, CachedController, ValuesController];
    const metadata = { controllers, providers: [Catalogue] };
    running = await startApp(adapter, { perf: { extensions: [cache()], ...perf }, metadata });
  };
  const findings = () => running.app.get(PerfService).snapshot().findings;
  afterEach(() => running.close());

  it('name a route that asks three times where once would do; different statements are no repetition', async () => {
    await start();
    for (let i = 0; i < 6; i++) {
      for (const path of ['three', 'skipped', 'statements']) await (await fetch(`${running.url}/${path}`)).text();
    }
    await running.requests();
    expect(findings()).toMatchObject([{ kind: 'repeated-calls', route: 'GET /three' }]);
    const { upstream } = running.app.get(PerfService).snapshot();
    const routes = upstream.flatMap((row) => row.routes.map(({ route }) => route));
    expect(routes.toSorted()).toEqual(['GET /statements', 'GET /three']);
  });

  it('name a route whose statements differ only in the values that are written into them', async () => {
    await start();
    for (let i = 0; i < 5; i++) await (await fetch(`${running.url}/values`)).text();
    await running.requests();
    expect(findings()).toMatchObject([{ kind: 'repeated-calls', route: 'GET /values' }]);
  });

  it('name a route that asks 48 times at once', async () => {
    await start();
    for (let i = 0; i < 5; i++) await (await fetch(`${running.url}/many`)).text();
    await running.requests();
    expect(findings()).toEqual([
      {
        kind: 'repeated-calls',
        route: 'GET /many',
        text: expect.stringMatching(/^GET \/many calls redis db:1 48 times a request \(N\+1\), which is /) as string,
      },
    ]);
  });

  it('say nothing of a few calls that are under way at the same time: they are one wait already', async () => {
    await start();
    for (let i = 0; i < 5; i++) await (await fetch(`${running.url}/together`)).text();
    await running.requests();
    expect(running.app.get(PerfService).snapshot().upstream).toContainEqual(
      expect.objectContaining({ target: 'redis db:1', calls: 15 }),
    );
    expect(findings()).toEqual([]);
  });

  it('say nothing of a route that seldom asks, nor of one that few requests have asked for', async () => {
    await start();
    await (await fetch(`${running.url}/rarely?asks=1`)).text();
    for (let i = 0; i < 5; i++) await (await fetch(`${running.url}/rarely`)).text();
    for (let i = 0; i < 4; i++) await (await fetch(`${running.url}/three`)).text();
    await running.requests();
    expect(findings()).toEqual([]);
  });

  it('say nothing of waits for a cached method: a batch of keys is one call already', async () => {
    await start();
    for (let i = 0; i < 6; i++) await (await fetch(`${running.url}/prices/${i}`)).text();
    await running.requests();
    const { upstream } = running.app.get(PerfService).snapshot();
    expect(upstream).toContainEqual(expect.objectContaining({ target: 'cache Catalogue.prices', calls: 24 }));
    expect(findings()).toEqual([]);
  });
});
