import { readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { record } from '../../src/entries/record.js';
import { PerfService } from '../../src/index.js';
import { startApp } from '../fixtures/app.js';
import { minute, newDirectory, recordedShop } from '../fixtures/recorded-shop.js';
import { linesOf } from '../fixtures/recordings.js';
import { until } from '../fixtures/until.js';

it('keeps the time between requests when the clock is set meanwhile', async () => {
  const { recording, get, ended } = await recordedShop('fastify');
  recording.start(minute);
  await get('/items/1');
  const now = Date.now.bind(Date);
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + 3_600_000);
  onTestFinished(() => clock.mockRestore());
  await get('/items/2');
  const [before, after] = await ended();
  expect(after!.t - before!.t).toBeLessThan(1_800_000);
  expect(Math.abs(before!.t - now())).toBeLessThan(60_000);
});

it('keeps whole sessions below its rate, and of each route a floor', async () => {
  const { recording, get, ended } = await recordedShop('fastify', { requestsPerSecond: 40, perRoute: 3 });
  const startedMs = performance.now();
  recording.start(minute);
  for (let round = 0; round < 8; round++) {
    await Promise.all(Array.from({ length: 40 }, (_, user) => get(`/items/${round}`, { 'x-session': `user ${user}` })));
  }
  for (let i = 0; i < 5; i++) await get(`/reset/${i}`, { 'x-session': 'one who comes late' });
  const lines = await ended();
  const seconds = 1 + (performance.now() - startedMs) / 1_000;
  const items = lines.filter(({ session, route }) => session !== null && route === '/items/:id');
  expect(items.length).toBeGreaterThan(0);
  for (const session of new Set(items.map((line) => line.session)))
    expect(items.filter((line) => line.session === session).map(({ url }) => url)).toEqual(
      Array.from({ length: 8 }, (_, round) => `/items/${round}`),
    );
  expect(lines.filter(({ session }) => session !== null).length).toBeLessThanOrEqual(40 * seconds);
  const rare = lines.filter(({ route }) => route === '/reset/:token');
  expect(rare.length).toBeGreaterThanOrEqual(3);
  // Of a session that is not whole, each stands alone.
  expect([0, 5]).toContain(rare.filter(({ session }) => session !== null).length);
});

it('keeps all of a burst where its average is below its rate', async () => {
  const { recording, get, ended } = await recordedShop('fastify', { requestsPerSecond: 2, perRoute: 0 });
  recording.start(minute);
  await Promise.all(Array.from({ length: 100 }, (_, i) => get(`/items/${i}`, { 'x-session': `user ${i % 20}` })));
  // The rest of its minute goes by without a request.
  const now = performance.now.bind(performance);
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 55_000);
  onTestFinished(() => clock.mockRestore());
  const lines = await ended();
  expect(lines).toHaveLength(100);
  expect(lines.every(({ session }) => session !== null)).toBe(true);
});

it('leaves out more where its lines would not last to its end', async () => {
  const { recording, get, ended } = await recordedShop('fastify', {
    requestsPerSecond: 40,
    perRoute: 1,
    maxBytes: 330_000,
  });
  // A busy machine may take long.
  const [now, beganMs] = [performance.now.bind(performance), performance.now()];
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => beganMs + (now() - beganMs) / 10);
  onTestFinished(() => clock.mockRestore());
  recording.start(minute);
  // 440 KB, were all of it recorded; 320 KB at the most, if that takes no more than twelve seconds.
  for (let round = 0; round < 10; round++)
    await Promise.all(Array.from({ length: 100 }, (_, i) => get(`/items/${round}`, { 'x-session': `user ${i}` })));
  await get('/reset/last');
  const lines = await ended();
  // It has gone on to its end; of answers at the same time, any may be the last.
  expect(lines.map(({ route }) => route)).toContain('/reset/:token');
  const kept = lines.filter(({ session }) => session !== null);
  expect(kept.length).toBeGreaterThan(0);
  expect(kept).toHaveLength(10 * new Set(kept.map(({ session }) => session)).size);
});

it('has a request whose session cannot be told, whatever `sessions` throws', async () => {
  const sessions = (): string => {
    // eslint-disable-next-line no-throw-literal
    throw null;
  };
  const { recording, get, ended } = await recordedShop('fastify', { sessions });
  recording.start(minute);
  await get('/items/7');
  expect((await ended()).map(({ url, session }) => [url, session])).toEqual([['/items/7', null]]);
});

it('ends by itself at its time and at its bytes, and leaves one file for its owner', async () => {
  const own = join(newDirectory(), 'of', 'its own');
  const { recording, get } = await recordedShop('fastify', { directory: own, maxBytes: 2_000 });
  recording.start({ forMs: 20 });
  await until('the end of its time', () => readdirSync(own).some((file) => file.endsWith('.gz')));
  expect((await recording.stop()).requests).toBe(0);
  recording.start(minute);
  for (let i = 0; i < 20; i++) await get(`/items/${i}`);
  await until('the end of its bytes', () => readdirSync(own).filter((file) => file.endsWith('.gz')).length === 2);
  const { file, requests } = await recording.stop();
  expect(linesOf(file)).toHaveLength(requests);
  expect(requests).toBeGreaterThan(1);
  expect(statSync(file).size).toBeLessThan(2_000);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(own).filter((name) => name.endsWith('.part'))).toEqual([]);
});

it('says when its file is lost, at stop() and on closing', async () => {
  const own = join(newDirectory(), 'lost');
  const { recording, get, close } = await recordedShop('fastify', { directory: own });
  recording.start(minute);
  await get('/items/1');
  rmSync(own, { recursive: true });
  await expect(recording.stop()).rejects.toThrow(/^PERF_ERR_RECORDING: The recording could not be written: ENOENT/);
  recording.start(minute);
  rmSync(own, { recursive: true });
  await close();
});

it('says what is wrong, and what to do', async () => {
  const { recording } = await recordedShop('fastify');
  await expect(recording.stop()).rejects.toThrow('PERF_ERR_RECORDING: No recording was started');
  for (const forMs of [undefined, 0, -1, Infinity, '1'])
    expect(() => recording.start({ forMs: forMs as number })).toThrow(
      'PERF_ERR_OPTION: `recording.start().forMs` must be a number of milliseconds above 0',
    );
  expect(() => recording.start(undefined as never)).toThrow('PERF_ERR_OPTION');
  recording.start(minute);
  expect(() => recording.start(minute)).toThrow('PERF_ERR_RECORDING: A recording is running already');

  const file = join(newDirectory(), 'file');
  writeFileSync(file, '');
  const nowhere = await recordedShop('fastify', { directory: join(file, 'below') });
  expect(() => nowhere.recording.start(minute)).toThrow(
    /^PERF_ERR_RECORDING: `record.directory` ".*" cannot be written to: .*emptyDir/,
  );

  const off = await recordedShop('fastify', {}, { enabled: false });
  expect(() => off.recording.start(minute)).toThrow('PERF_ERR_OFF');

  const { app, close } = await startApp('fastify');
  onTestFinished(close);
  const { recording: none } = app.get(PerfService);
  const line =
    /^PERF_ERR_EXTENSION: .*Add it: PerfModule.forRoot\(\{ extensions: \[record\(\{ directory: '.*' \}\)\] \}\)/;
  expect(() => none.start(minute)).toThrow(line);
  await expect(none.stop()).rejects.toThrow(line);
});

it('refuses options that are wrong', () => {
  expect(() => record({} as never)).toThrow(
    'PERF_ERR_OPTION: `record.directory` must be the path of a folder, got `undefined`.',
  );
  expect(() => record({ directory: '/tmp', perRoute: -1 })).toThrow(
    '`record.perRoute` must be a number of requests of 0 or more',
  );
});
