import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';

/** What `npm pack` runs first, in a folder that is no checkout. */
const packIn = (cwd: string, script: string): Promise<{ code: number; said: string }> =>
  new Promise((done) => {
    execFile(process.execPath, [script], { cwd }, (error, _, stderr) =>
      done({ code: error === null ? 0 : Number(error.code), said: stderr.trim() }),
    );
  });

describe.each([
  ['.', 'dist/index.js'],
  ['packages/load', 'dist/main.js'],
])('the package in %s', (folder, built) => {
  const at = mkdtempSync(join(tmpdir(), 'perf-packing-'));
  afterEach(() => rmSync(at, { recursive: true, force: true }));

  it('is not packed before it is built', async () => {
    const text = readFileSync(join(folder, 'package.json'), 'utf8');
    const { name, scripts } = JSON.parse(text) as { name: string; scripts?: { prepack?: string } };
    const [, script] = /^node (\S+)$/.exec(scripts?.prepack ?? '')!;
    writeFileSync(join(at, 'package.json'), text);
    expect(await packIn(at, resolve(folder, script!))).toEqual({
      code: 1,
      said: `${name} is not built: ${built} is missing. Run \`npm run build\` in the root of the repository first.`,
    });
    mkdirSync(join(at, 'dist'));
    writeFileSync(join(at, built), '');
    expect(await packIn(at, resolve(folder, script!))).toEqual({ code: 0, said: '' });
  });
});
