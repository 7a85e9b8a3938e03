import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { nodeBinaries } from '../fixtures/node-versions.js';

const file = fileURLToPath(new URL('../../build/test/fixtures/surroundings.process.js', import.meta.url));

const run = (execPath: string, surroundings: string): Promise<{ stdout: string; stderr: string }> =>
  new Promise((resolve, reject) => {
    execFile(execPath, [file, surroundings], { timeout: 200_000 }, (error, stdout, stderr) =>
      error === null ? resolve({ stdout, stderr }) : reject(new Error(stderr, { cause: error })),
    );
  });

describe.each(nodeBinaries())('a block has its request and its line on $name', ({ execPath }) => {
  it.for([
    ['promise', 'another class stands in for the global `Promise`'],
    ['frozen-date', '`Date` stands still'],
  ])('where %s: %s', { timeout: 500_000 }, async ([surroundings], { skip }) => {
    const { stdout, stderr } = await run(execPath, surroundings!);
    // The sampler writes there of a loop that a slow machine has kept for over a second.
    expect(stderr.replaceAll(/^\[Perf\] .*\n/gm, '')).toBe('');
    const isNamed = (said: string): boolean => said.split('\n').at(-1) !== '';
    // The control: nothing stands in for anything there.
    if (!isNamed(stdout)) skip(!isNamed((await run(execPath, 'none')).stdout), 'the machine let no block be named');
    expect(JSON.parse(stdout.split('\n').at(-1)!)).toEqual({
      route: '/block',
      method: 'BlockController.block',
      location: expect.stringMatching(/surroundings\.process\.ts:\d+:\d+$/) as string,
    });
  });

  // Node itself starts no worker thread there.
  it('is measured where the working directory was deleted before the start, and the log says that it is not traced', async () => {
    const { stdout } = await run(execPath, 'no-folder');
    expect(stdout.split('\n').at(-1)).toBe('measured');
    expect(stdout).toMatch(/the event-loop sampler ended: ENOENT.* Blocks are still measured/);
  }, 90_000);
});
