import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Controller, Get, HttpException, Param } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { fileHistory, PerfService, type HistorySeries, type PerfModuleOptions } from '../../src/index.js';
import { type Adapter, either, startApp, type TestApp } from '../fixtures/app.js';

@Controller()
class ShopController {
  @Get('users/:id')
  user(@Param('id') id: string) {
    return { id };
  }
  @Get('broken')
  broken() {
    throw new HttpException('no', 503);
  }
}

const HOUR_MS = 3_600_000;
const lastHour = (): { from: number; to: number } => ({ from: Date.now() - HOUR_MS, to: Date.now() + 1 });

const folders: string[] = [];
const folder = (): string => {
  const made = mkdtempSync(join(tmpdir(), 'perf-history-'));
  folders.push(made);
  return join(made, 'history');
};
afterEach(() => {
  for (const made of folders.splice(0)) rmSync(made, { recursive: true, force: true });
});

async function start(perf: PerfModuleOptions = {}, adapter: Adapter = 'fastify') {
  const running = await startApp(adapter, { perf, metadata: { controllers: [ShopController] } });
  return { ...running, perf: running.app.get(PerfService) };
}
async function ask({ url, requests }: TestApp, paths: readonly string[]): Promise<void> {
  for (const path of paths) await (await fetch(url + path)).text();
  await requests();
}
const sum = (of: HistorySeries, key: 'count' | 'errors' = 'count'): number =>
  of.points.reduce((total, point) => total + point[key], 0);

it.each(either('fastify'))(
  'has the running minute: counts, errors and durations, of the whole and of a route: %s',
  async (adapter) => {
    const app = await start({ history: true }, adapter);
    await ask(app, ['/users/1', '/users/2', '/broken', '/users/3', '/nowhere']);
    const whole = await app.perf.history(lastHour());
    const ofRoute = await app.perf.history(lastHour(), { route: 'GET /users/:id' });
    const ofNone = await app.perf.history(lastHour(), { route: 'GET /none' });
    const { routes } = app.perf.snapshot();
    await app.close();
    expect(whole.stepMs).toBe(60_000);
    expect(whole.points.every(({ at }) => at % 60_000 === 0)).toBe(true);
    expect([sum(whole), sum(whole, 'errors'), sum(ofRoute), sum(ofNone)]).toEqual([5, 1, 3, 0]);
    expect(ofNone.points.length).toBeGreaterThan(0);
    const { durationMs } = routes.find(({ route }) => route === '/users/:id')!;
    const slowest = Math.max(...ofRoute.points.map((point) => point.durationMs.max));
    expect(Math.abs(slowest - durationMs.max)).toBeLessThanOrEqual(0.02 * durationMs.max);
  },
);

describe('history, whatever serves', () => {
  it('outlives the process with `fileHistory()`: runs of one bucket add up, and only the owner may read', async () => {
    const directory = folder();
    const perf = (release: string): PerfModuleOptions => ({ release, history: { store: fileHistory({ directory }) } });
    const first = await start(perf('1.0.0'));
    await ask(first, ['/users/1', '/users/2']);
    await first.close();
    const second = await start(perf('1.1.0'));
    await ask(second, ['/users/3', '/broken']);
    const series = await second.perf.history(lastHour(), { route: 'GET /users/:id' });
    const hours = await second.perf.history({ from: Date.now() - 72 * HOUR_MS, to: Date.now() });
    const compared = await second.perf.compare('release', { route: 'GET /users/:id' });
    await second.close();
    const third = await start(perf('1.1.0'));
    const after = await third.perf.history({ from: Date.now() - 72 * HOUR_MS, to: Date.now() });
    await third.close();
    expect(hours.stepMs).toBe(HOUR_MS);
    expect([sum(series), sum(hours), sum(after)]).toEqual([3, 4, 4]);
    expect([compared.before.releases, compared.after.releases]).toEqual([['1.0.0'], ['1.1.0']]);
    expect([compared.whole.before.count, compared.whole.after.count]).toEqual([2, 1]);
    expect(compared.caveats.join(' ')).toContain('Confounded: deployed to all pods at once');
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    const files = readdirSync(directory);
    expect(files.filter((name) => name.endsWith('.rows')).length).toBeGreaterThanOrEqual(3);
    for (const name of files) expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600);
    expect(files.filter((name) => name.startsWith('running'))).toEqual([]);
  });

  it('knows nothing with `history: false`, and says so', async () => {
    const app = await start({ history: false });
    await ask(app, ['/users/1']);
    const series = await app.perf.history(lastHour());
    await expect(app.perf.compare('day')).rejects.toMatchObject({ code: 'PERF_ERR_OFF' });
    const verdicts = app.perf.verdicts();
    await app.close();
    expect(series.points).toEqual([]);
    expect(verdicts).toEqual([]);
  });

  it('refuses a range, a route or a comparison that is none', async () => {
    const app = await start();
    const now = Date.now();
    const wrong: (() => Promise<unknown>)[] = [
      () => app.perf.history({ from: now, to: now }),
      () => app.perf.history({ from: Number.NaN, to: now }),
      () => app.perf.history({ from: 0, to: now, stepMs: 0 }),
      () => app.perf.history({ from: 0, to: now, stepMs: 1e20 }),
      () => app.perf.history({ from: 0, to: now }, { route: '' }),
      () => app.perf.history({ from: 0, to: now }, { rout: 'GET /users/:id' } as object),
      () => app.perf.compare('day', { route: 5 as never }),
      () => app.perf.compare('month' as 'day'),
      () => app.perf.compare({ before: { from: 1, to: 0 }, after: { from: 0, to: 1 } }),
    ];
    for (const call of wrong) await expect(call()).rejects.toMatchObject({ code: 'PERF_ERR_OPTION' });
    await app.close();
  });
});
