import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { expect, it, onTestFinished, vi } from 'vitest';
import { writeEntry } from '../../../src/defer/spill/line.js';
import { Spill } from '../../../src/defer/spill/spill.js';
import { handlePrototype, temporaryFolder } from '../../fixtures/disk.js';
import { entryOf } from '../defer/durable-entry.js';

const MIB = 1024 ** 2;
/** Of 8 MiB each: 1 GiB in the long form. */
const FILES = process.env['PERF_LONG'] === undefined ? 8 : 128;

it(`${FILES * 8} MiB of durable work left behind: the boot reads none of it, and later a file at a time`, async () => {
  const root = temporaryFolder();
  const gone = join(root, '0af76519-16cd-43dd-8448-eb211c80319c');
  mkdirSync(gone, { mode: 0o700 });
  const line = writeEntry(entryOf('e-1', 'x'.repeat(700)));
  const perFile = Math.floor((8 * MIB) / line.length);
  for (let n = 1; n <= FILES; n++) {
    writeFileSync(join(gone, `work-${String(n).padStart(6, '0')}.ndjson`), line.repeat(perFile));
  }
  const read = vi.spyOn(await handlePrototype(), 'read');
  onTestFinished(() => read.mockRestore());
  let found = 0;
  const events = { report: () => {}, found: (entries: number) => void (found += entries), lost: () => {} };
  const spill = new Spill({ path: root, maxBytes: 1024 * MIB }, events);
  const startedMs = performance.now();
  await spill.open();
  await spill.adopt(() => {});
  const bootMs = performance.now() - startedMs;
  expect(read).not.toHaveBeenCalled();
  expect([spill.unreadFiles, found]).toEqual([FILES, 0]);

  const delays = monitorEventLoopDelay({ resolution: 5 });
  delays.enable();
  let taken = 0;
  while (taken < 2 * perFile) {
    const { taken: some } = await spill.takeParked(500);
    taken += some.length;
    spill.strike(some.map(({ place }) => place));
  }
  delays.disable();
  expect(found).toBeGreaterThanOrEqual(2 * perFile);
  // Figures for whoever runs the long form: a busy machine says nothing of either.
  if (FILES > 8)
    console.log(`boot ${bootMs.toFixed(0)} ms, longest turn while reading ${(delays.max / 1e6).toFixed(0)} ms`);
  await spill.close(20_000);
}, 300_000);
