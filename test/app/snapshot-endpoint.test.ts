import type { ServerResponse } from 'node:http';
import { Controller, Get } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
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
const answered = async () => ({ status: 200, type: 'text/plain', body: '' });
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

  it.each<[string, PerfModuleOptions]>([
    ['the page', { dashboard: { path: '/same' } }],
    ['a sink', { sinks: [{ name: 'own', publish: () => {}, start: (host) => host.get('/same', answered) }] }],
  ])('is refused on the path of %s', async (_other, perf) => {
    const snapshotEndpoint = { path: '/same', authorize: () => true };
    const starting = startApp(adapter, { perf: { ...perf, snapshotEndpoint }, metadata });
    await expect(starting).rejects.toThrow(
      /^PERF_ERR_OPTION: Two parts of this module serve GET \/same\. Give `dashboard`, .* a `path` of its own\.$/,
    );
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
