import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';

it('bullmqStore() without its packages stops the boot with the command that installs them', () => {
  if (!existsSync('dist/entries/bullmq.js')) execFileSync('node', ['scripts/build.mjs']);
  // A copy of what is built, where no package can be found.
  const folder = mkdtempSync(join(tmpdir(), 'perf-no-peers-'));
  try {
    cpSync('dist', join(folder, 'dist'), { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    const script = `
      import { bullmqStore } from './dist/entries/bullmq.js';
      bullmqStore({ connection: {} }).start({}).catch((error) => console.log(error.code, error.message));`;
    const output = execFileSync('node', ['--input-type=module', '-e', script], { cwd: folder, encoding: 'utf8' });
    expect(output).toBe(
      'PERF_ERR_MISSING_PEER PERF_ERR_MISSING_PEER: `bullmqStore()` needs the package `bullmq`, which is not installed. Run: npm install bullmq\n',
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 240_000);
