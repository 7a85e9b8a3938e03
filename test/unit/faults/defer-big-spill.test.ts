import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { expect, it, onTestFinished, vi } from 'vitest';
import { writeEntry } from '../../../src/defer/durable/entry.js';
import { ProcessFolder } from '../../../src/defer/spill/process-folder.js';
import { Spill } from '../../../src/defer/spill/spill.js';
import { MemoryPlace, MemoryStore } from '../contract/memory-store.js';
import { handlePrototype, temporaryFolder } from '../../fixtures/disk.js';
import { getOrAdd, NO_WORKER } from '../defer/durable-entry.js';
import { engineWith } from '../defer/engine.fixture.js';

const MIB = 1024 ** 2;
/** Of 8 MiB each: 1 GiB in the long form. */
const FILES = process.env['PERF_LONG'] === undefined ? 8 : 128;

it(`${FILES * 8} MiB of durable work left behind: the boot reads none of it, and later a file at a time`, async () => {
  const root = temporaryFolder();
  const gone = join(root, '0af76519-16cd-43dd-8448-eb211c80319c');
  mkdirSync(gone, { mode: 0o700 });
  const line = writeEntry(getOrAdd('e-1', 'x'.repeat(700)));
  const perFile = Math.floor((8 * MIB) / line.length);
  for (let n = 1; n <= FILES; n++) {
    writeFileSync(join(gone, `work-${String(n).padStart(6, '0')}.ndjson`), line.repeat(perFile));
  }
  const read = vi.spyOn(await handlePrototype(), 'read');
  onTestFinished(() => read.mockRestore());
  let found = 0;
  const move = (_from: unknown, _to: unknown, entries = 1): void => void (found += entries);
  const folder = new ProcessFolder(root, () => {});
  const spill = new Spill(folder, { maxBytes: 1024 * MIB }, { move }, () => {});
  const startedMs = performance.now();
  await folder.open();
  await folder.keepAdopting((files) => spill.adopt(files));
  const bootMs = performance.now() - startedMs;
  expect(read).not.toHaveBeenCalled();
  expect([spill.unreadFiles, found]).toEqual([FILES, 0]);

  const delays = monitorEventLoopDelay({ resolution: 5 });
  delays.enable();
  let taken = 0;
  while (taken < 2 * perFile) {
    const some = await spill.takeParked();
    taken += some.length;
    spill.strike(some.map(({ place }) => place));
  }
  delays.disable();
  expect(found).toBeGreaterThanOrEqual(2 * perFile);
  // Figures for whoever runs the long form: a busy machine says nothing of either.
  if (FILES > 8)
    console.log(`boot ${bootMs.toFixed(0)} ms, longest turn while reading ${(delays.max / 1e6).toFixed(0)} ms`);
  await spill.close();
  await folder.release();
}, 300_000);

it('1,500 dead letters, and the page open: durable work goes on beside it', async () => {
  const place = new MemoryPlace();
  const store = new MemoryStore(place, false, { path: temporaryFolder(), maxBytes: 1024 * MIB });
  const { engine, reports } = engineWith({ store });
  await engine.durable!.start(NO_WORKER);
  onTestFinished(() => engine.drain(1_000));
  let isOpen = true;
  const page = (async () => {
    while (isOpen) {
      engine.durable!.dead.list(-30, 30);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  })();
  for (let i = 0; i < 1_500; i++) {
    engine.durable!.dead.add(getOrAdd(`d-${i}`, 'x'.repeat(8_000)), 'refused');
    if (i % 10 > 0) continue;
    const armed = engine.durable!.arm(getOrAdd(`w-${i}`), null)!;
    await armed.written;
    armed.commit(200);
  }
  isOpen = false;
  await page;
  await engine.idle();
  expect(place.known.size).toBe(150);
  const kept = engine.durable!.dead.list(0, 2_000);
  expect(kept.map(({ id }) => id)).toEqual(Array.from({ length: 1_000 }, (_, i) => `d-${500 + i}`));
  expect(reports).toEqual(expect.arrayContaining([expect.stringContaining('more than 1000 dead letters')]));
}, 300_000);
