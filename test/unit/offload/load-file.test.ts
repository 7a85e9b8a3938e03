import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import { loadInWorker } from '../../../src/offload/load-file.js';

const folder = mkdtempSync(join(tmpdir(), 'perf-load-'));
afterAll(() => rmSync(folder, { recursive: true }));

it('a worker loads the source of a file that is compiled elsewhere', async () => {
  writeFileSync(join(folder, 'module.mts'), '');
  const { href } = pathToFileURL(join(folder, 'module.mjs'));
  expect(await loadInWorker(href, async (imported) => imported)).toBe(href.replace(/mjs$/, 'mts'));
});

it('a worker requires TypeScript that `import()` does not load, and else says why that could not', async () => {
  const [task, esm, script] = ['task.ts', 'esm.ts', 'task.js'].map((name) => pathToFileURL(join(folder, name)).href);
  for (const name of ['task.ts', 'task.js']) writeFileSync(join(folder, name), "module.exports = 'required';");
  writeFileSync(join(folder, 'esm.ts'), "import './next.js'; await 1; export {};");
  const unknown = (): Promise<unknown> => Promise.reject(new Error('Unknown file extension'));
  expect(await loadInWorker(task!, async () => 'imported')).toBe('imported');
  expect(await loadInWorker(task!, unknown)).toBe('required');
  await expect(loadInWorker(esm!, unknown)).rejects.toThrow('Unknown file extension');
  await expect(loadInWorker(script!, unknown)).rejects.toThrow('Unknown file extension');
});
