import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { MemoryPlace, MemoryStore } from '../../contract/memory-store.js';
import { handlePrototype, temporaryFolder } from '../../../fixtures/disk.js';
import { spilledIn } from '../../../fixtures/spilled.js';
import { until } from '../../../fixtures/until.js';
import { getOrAdd, NO_WORKER } from '../durable-entry.js';
import { engineWith } from '../engine.fixture.js';

async function start() {
  const path = temporaryFolder();
  const place = new MemoryPlace();
  place.refused.add('bad');
  const store = new MemoryStore(place, false, { path, maxBytes: 1024 ** 2 });
  const { engine, reports } = engineWith({ store });
  await engine.durable!.start(NO_WORKER);
  onTestFinished(() => engine.drain(100));
  const refuse = async (arm: () => void): Promise<void> => {
    arm();
    // A refusal is one job's fault only where others get through.
    const others = setInterval(() => engine.durable!.arm(getOrAdd(randomUUID()), null)!.commit(200), 50);
    onTestFinished(() => clearInterval(others));
    await until('it to be refused', () => engine.stats().failed === 1);
    clearInterval(others);
  };
  return { engine, path, place, store, reports, refuse };
}

it('one that the disk refuses is sent again once: no later start finds it in the spill', async () => {
  const { engine, path, place, reports, refuse } = await start();
  const [own] = readdirSync(path) as [string];
  // The first file of work takes the first name; no letter can take the others.
  for (let n = 2; n < 10; n++) mkdirSync(join(path, own, `dead-00000${n}.ndjson`));
  await refuse(() => void engine.durable!.enqueue(getOrAdd('bad')).catch(() => {}));
  await until('the disk to refuse it', () => reports.some((text) => text.includes('could not write: EEXIST')));
  expect(engine.durable!.dead.list()).toMatchObject([{ id: 'bad' }]);
  place.refused.clear();
  expect(await engine.durable!.resend()).toBe(1);
  await engine.idle();
  expect(place.known.has('bad')).toBe(true);
  await until('the spill to be empty', () => spilledIn(path).ids.length === 0);
});

it('one that was refused before the disk had its entry leaves none there', async () => {
  const { engine, path, refuse } = await start();
  const waiting: (() => void)[] = [];
  const disk = vi
    .spyOn(await handlePrototype(), 'datasync')
    .mockImplementation(() => new Promise((resolve) => waiting.push(resolve)));
  onTestFinished(() => disk.mockRestore());
  await refuse(() => engine.durable!.arm(getOrAdd('bad'), null)!.commit(200));
  expect(engine.durable!.dead.list()).toMatchObject([{ id: 'bad' }]);
  disk.mockRestore();
  for (const resolve of waiting) resolve();
  await until('the spill to be empty', () => engine.durable!.onDisk.entries === 0 && spilledIn(path).ids.length === 0);
});

it('a store that never closes does not keep the spill from closing', async () => {
  const { engine, path, store } = await start();
  store.close = () => new Promise(() => {});
  void engine.durable!.closeStore(60_000);
  await until('its folder to be let go', () => readdirSync(path).length === 0);
});
