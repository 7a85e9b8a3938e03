import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

// The inspector would show the sampler another thread's stack there. It boots a test runner of its own: about 3 s.
it('an application inside a worker thread, as in a test runner’s thread pool, serves, measures blocks and blames nobody', async () => {
  const config = 'test/fixtures/in-a-worker/vitest.config.ts';
  const run = promisify(execFile)('node_modules/.bin/vitest', ['run', '--config', config, '--reporter=json'], {
    env: { PATH: process.env['PATH'] ?? '' },
  });
  // It rejects, with the runner's own report, when a test fails there.
  const { stdout } = await run;
  expect(JSON.parse(stdout)).toMatchObject({ numPassedTests: 2, numFailedTests: 0 });
}, 120_000);
