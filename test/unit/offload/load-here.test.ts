import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { importOrRequire } from '../../../src/offload/load-here.js';

const folder = mkdtempSync(join(tmpdir(), 'perf-load-'));
afterAll(() => rmSync(folder, { recursive: true }));
const file = (name: string): string => {
  writeFileSync(join(folder, name), "module.exports = 'required';");
  return pathToFileURL(join(folder, name)).href;
};
const failing = (error: Error) => async () => {
  throw error;
};
const unknownExtension = Object.assign(new TypeError('.ts'), { code: 'ERR_UNKNOWN_FILE_EXTENSION' });

describe('a worker loads a file', () => {
  it('as a loader of the process does, which `require()` may not know', async () => {
    expect(await importOrRequire(file('a.ts'), async () => 'imported')).toBe('imported');
  });

  it.each([
    ['knows no TypeScript', unknownExtension],
    ['knows no decorators', new SyntaxError('Invalid or unexpected token')],
  ])('by `require()`, whose hooks may read it, where `import()` %s', async (_, error) => {
    expect(await importOrRequire(file('b.ts'), failing(error))).toBe('required');
  });

  it('once, where it fails itself, or is no TypeScript', async () => {
    const own = new Error('the configuration is missing');
    await expect(importOrRequire(file('c.ts'), failing(own))).rejects.toBe(own);
    const broken = new SyntaxError('Unexpected token');
    await expect(importOrRequire(file('d.js'), failing(broken))).rejects.toBe(broken);
  });
});
