import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, inject, it } from 'vitest';

it.runIf(process.platform === 'linux')('a process without a file descriptor left lives, and is measured', async () => {
  const script = join(inject('compiledFixtures'), 'exhausted.process.js');
  const command = `ulimit -n 512 && exec "${process.execPath}" "${script}"`;
  const { stdout } = await promisify(execFile)('bash', ['-c', command], { timeout: 50_000 });
  expect(stdout).toBe('["ok",true]\n');
});
