import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import { loadExports } from '../../../src/offload/load-file.js';

const folder = mkdtempSync(join(tmpdir(), 'perf-load-'));
afterAll(() => rmSync(folder, { recursive: true }));

it('a worker loads the source of a file that is compiled elsewhere', async () => {
  writeFileSync(join(folder, 'module.mts'), '');
  const file = pathToFileURL(join(folder, 'module.mjs'));
  expect(await loadExports(file, async (imported) => ({ imported }))).toEqual({
    imported: file.href.replace(/mjs$/, 'mts'),
  });
});

it('a worker requires TypeScript that `import()` does not load, and nothing else', async () => {
  const [task, esm, script] = ['task.ts', 'esm.ts', 'task.js'].map((name) => pathToFileURL(join(folder, name)));
  for (const name of ['task.ts', 'task.js']) writeFileSync(join(folder, name), "exports.by = 'require';");
  writeFileSync(join(folder, 'esm.ts'), "import './next.js'; await 1; export {};");
  const unknown = (): Promise<unknown> => Promise.reject(new Error('Unknown file extension'));
  expect(await loadExports(task!, async () => ({ by: 'import' }))).toEqual({ by: 'import' });
  expect(await loadExports(task!, unknown)).toEqual({ by: 'require' });
  await expect(loadExports(esm!, unknown)).rejects.toThrow();
  await expect(loadExports(script!, unknown)).rejects.toThrow('Unknown file extension');
});
