import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, inject, it, onTestFinished } from 'vitest';

it('an application that is started in a deleted folder boots, measures, keeps its history and closes', async () => {
  const root = mkdtempSync(join(tmpdir(), 'perf-gone-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const folder = mkdtempSync(join(root, 'release-'));
  // Below no package.json: the working directory is asked for one.
  const program = join(root, 'main.mjs');
  const source = pathToFileURL(resolve(inject('compiledFixtures'), 'gone-folder.process.js')).href;
  writeFileSync(program, `import ${JSON.stringify(source)};\n`);
  const history = join(root, 'history');
  const start = 'rmdir "$PWD"; exec "$0" "$@"';
  const { stdout, stderr } = await promisify(execFile)('sh', ['-c', start, process.execPath, program, history], {
    cwd: folder,
  });
  expect(JSON.parse(stdout.trim().split('\n').at(-1)!), stderr).toEqual({ status: 200, count: 1, deferred: 1 });
  expect(readdirSync(history).some((name) => name.endsWith('.rows'))).toBe(true);
  expect(readdirSync(root)).toEqual(['history', 'main.mjs']);
});
