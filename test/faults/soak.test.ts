import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';

/** The whole soak is half an hour: `npm run bench -- soak`. Here, in `npm run test:long`, it is under a minute. */
describe.runIf(process.env['PERF_LONG'] !== undefined)('mixed load with faults in one process', () => {
  it('leaves memory and handles flat, and every counter adds up', async () => {
    const child = spawn(process.execPath, ['bench/soak.mjs', '--minutes', '0.8', '--no-write'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let stdout = '';
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number | null];
    expect(stdout.trim().split('\n').slice(-20).join('\n')).toContain('Flat, and everything adds up.');
    expect(code).toBe(0);
  }, 150_000); // Most of a minute of load, and what waits for Redis after it.
});
