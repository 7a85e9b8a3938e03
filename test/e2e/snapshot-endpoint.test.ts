import type { ServerResponse } from 'node:http';
import { Controller, Get, Post } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { prometheusSink } from '../../src/entries/prometheus.js';
import { type PerfModuleOptions, type PerfSnapshot, PerfService } from '../../src/index.js';
import { adapters, startApp } from '../fixtures/app.js';
import { uncaughtDuring } from '../fixtures/uncaught.js';

@Controller('users')
class UsersController {
  @Get()
  list() {
    return [];
  }
}
const metadata = { controllers: [UsersController] };

describe.each(adapters)('snapshotEndpoint on %s', (adapter) => {
  it('does not exist unless it is asked for', async () => {
    const running = await startApp(adapter, { metadata });
    expect((await fetch(`${running.url}/perf/snapshot`)).status).toBe(404);
    await running.close();
  });

  it('answers with the snapshot to whom `authorize` lets in', async () => {
    const authorize = async (request: unknown): Promise<boolean> =>
      (request as { headers: Record<string, string> }).headers['x-key'] === 'k1';
    const running = await startApp(adapter, { perf: { snapshotEndpoint: { authorize } }, metadata });
    await (await fetch(`${running.url}/users`)).text();
    await running.requests();
    const url = `${running.url}/perf/snapshot`;
    const refused = await fetch(url);
    expect([refused.status, refused.headers.get('cache-control')]).toEqual([403, 'no-store']);
    const response = await fetch(url, { headers: { 'x-key': 'k1' } });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    // A proxy that keeps answers would give it to whom `authorize` does not let in.
    expect(response.headers.get('cache-control')).toBe('no-store');
    const answered = (await response.json()) as PerfSnapshot;
    const { at: _, ...known } = running.app.get(PerfService).snapshot();
    expect(answered).toMatchObject(JSON.parse(JSON.stringify({ routes: known.routes })) as object);
    expect(answered.routes.map(({ route, count }) => [route, count])).toEqual([['/users', 1]]);
    expect((await running.requests()).map(({ route }) => route)).toEqual(['/users']);
    await running.close();
  });

  it('leaves alone what middleware has answered meanwhile', async () => {
    let [asked, letIn] = [(): void => {}, (_is: boolean): void => {}];
    const authorize = (): Promise<boolean> => {
      asked();
      return new Promise((resolve) => (letIn = resolve));
    };
    const running = await startApp(adapter, {
      perf: { snapshotEndpoint: { authorize } },
      metadata,
      beforeInit: (app) =>
        void app.use((_request: unknown, response: ServerResponse, next: () => void) => {
          asked = () => response.writeHead(503).end('too slow');
          next();
        }),
    });
    const caught = await uncaughtDuring(async () => {
      const response = await fetch(`${running.url}/perf/snapshot`);
      expect([response.status, await response.text()]).toEqual([503, 'too slow']);
      letIn(true);
    });
    expect(caught).toEqual([]);
    await running.close();
  });

  it('takes another path, and answers 500 with nothing in it when `authorize` throws', async () => {
    const authorize = (): boolean => {
      throw new Error('secret detail');
    };
    const running = await startApp(adapter, { perf: { snapshotEndpoint: { path: '/_perf', authorize } }, metadata });
    const response = await fetch(`${running.url}/_perf`);
    expect([response.status, await response.text()]).toEqual([500, 'Internal Server Error\n']);
    await running.close();
  });

  it('refuses a path that something else answers', async () => {
    const snapshotEndpoint = { path: '/perf', authorize: () => true };
    const twice = 'PERF_ERR_OPTION: GET /perf is asked for twice, by ';
    const booted = (perf: PerfModuleOptions) => startApp(adapter, { perf: { snapshotEndpoint, ...perf }, metadata });
    await expect(booted({ dashboard: true })).rejects.toThrow(
      `${twice}\`dashboard\` and by \`snapshotEndpoint\`, and only one can answer. Give one of them another path.`,
    );
    await expect(booted({ sinks: [prometheusSink({ path: '/perf' })] })).rejects.toThrow(
      `${twice}\`snapshotEndpoint\` and by sink "prometheus", and only one can answer.`,
    );
    for (const path of ['/Perf', '/perf/']) {
      const booting = booted({ sinks: [prometheusSink({ path })] });
      if (adapter === 'fastify') await (await booting).close();
      else
        await expect(booting).rejects.toThrow(
          `GET ${path} is asked for twice, by \`snapshotEndpoint\` as /perf and by sink "prometheus", and only one can answer.`,
        );
    }
  });

  it('says at the start which route of the application it answers in place of, where the framework lets both be', async () => {
    @Controller('perf')
    class TakenController {
      @Get()
      all() {
        return 'own';
      }
      @Post()
      create() {
        return 'created';
      }
    }
    const warnings: unknown[] = [];
    const logger = { log() {}, error() {}, warn: (message: unknown) => void warnings.push(message) };
    const perf = { snapshotEndpoint: { path: '/perf', authorize: () => true } };
    const booting = startApp(adapter, { perf, metadata: { controllers: [TakenController] }, nest: { logger } });
    if (adapter === 'fastify')
      return expect(booting).rejects.toThrow("Method 'GET' already declared for route '/perf'");
    const { url, close } = await booting;
    expect(warnings.filter((message) => String(message).includes('GET'))).toEqual([
      'GET /perf is answered by `snapshotEndpoint` and never by TakenController.all. Give one of them another path.',
    ]);
    expect(await (await fetch(`${url}/perf`, { method: 'POST' })).text()).toBe('created');
    await close();
  });
});

it.each([
  [{}, '`snapshotEndpoint.authorize` must be a function of the request that answers with a boolean, got `undefined`.'],
  [
    { authorize: () => true, path: 'perf' },
    '`snapshotEndpoint.path` must be a path that begins with `/`, got `"perf"` (string).',
  ],
  [true, '`snapshotEndpoint` must be an object, got `true` (boolean).'],
])('snapshotEndpoint: %j is refused at boot', async (snapshotEndpoint, message) => {
  const perf = { snapshotEndpoint } as unknown as PerfModuleOptions;
  await expect(startApp('fastify', { perf, metadata })).rejects.toThrow(`PERF_ERR_OPTION: ${message}`);
});
