import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import { loadInWorker } from '../../../src/offload/load-here.js';

const folder = mkdtempSync(join(tmpdir(), 'perf-load-'));
afterAll(() => rmSync(folder, { recursive: true }));

it.each([
  ['task.ts', '--loader ts-node/esm', 'imported'],
  ['task.ts', '--import tsx', 'imported'],
  ['task.ts', '-r ts-node/register --loader ts-node/esm', 'imported'],
  ['task.ts', '-r dotenv/config --import @swc-node/register/esm-register', 'imported'],
  ['task.ts', '--enable-source-maps -r ts-node/register', 'required'],
  ['task.ts', '--require=@swc-node/register', 'required'],
  ['task.js', '-r ts-node/register', 'imported'],
])('a worker loads %s as the process does: under `%s` it is %s', async (name, loaders, how) => {
  writeFileSync(join(folder, name), "module.exports = 'required';");
  const { href } = pathToFileURL(join(folder, name));
  expect(await loadInWorker(href, async () => 'imported', loaders)).toBe(how);
});

it('a worker loads the source of a file that is compiled elsewhere', async () => {
  writeFileSync(join(folder, 'module.mts'), '');
  const { href } = pathToFileURL(join(folder, 'module.mjs'));
  expect(await loadInWorker(href, async (imported) => imported, '--import tsx')).toBe(href.replace(/mjs$/, 'mts'));
});

it('a worker loads in the other way what its loader does not know, and else says why the first way could not', async () => {
  const [task, esm] = ['task.ts', 'esm.ts'].map((name) => pathToFileURL(join(folder, name)).href) as [string, string];
  const notKnown = (): Promise<unknown> => Promise.reject(new Error('Unknown file extension'));
  expect(await loadInWorker(task, notKnown, '--import tsx')).toBe('required');
  writeFileSync(join(folder, 'esm.ts'), "import './next.js'; await 1; export {};");
  expect(await loadInWorker(esm, async () => 'imported', '-r ts-node/register')).toBe('imported');
  await expect(loadInWorker(esm, notKnown, '--import tsx')).rejects.toThrow('Unknown file extension');
});
