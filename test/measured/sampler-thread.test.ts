import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { nodeBinaries } from '../fixtures/node-versions.js';

const built = (path: string): string => fileURLToPath(new URL(`../../build/${path}`, import.meta.url));
const file = built('test/fixtures/sampler-thread.process.js');

// It writes to the process's own stderr, so each needs a process: about 0.5 s.
describe.each(nodeBinaries())('what the sampler writes while a block lasts, on $name', ({ execPath }) => {
  const run = async (...options: string[]): Promise<{ stdout: string; said: string[]; longestMs: number }> => {
    const { stdout, stderr } = await promisify(execFile)(execPath, [file, ...options], { timeout: 20_000 });
    const said = stderr.split('\n').filter((line) => line.startsWith('[Perf] '));
    const longestMs = Math.max(...said.map((line) => Number(/(\d+) ms/.exec(line)?.[1] ?? 0)));
    return { stdout, said: said.map((line) => line.replace(/\d+ ms/, 'N ms')), longestMs };
  };

  it('is of that block: not the request and not the line of an earlier one', async () => {
    const { stdout, said } = await run();
    expect(said).toEqual([
      '[Perf] GET /reports/:id (ReportsController.get) has blocked the event loop for N ms and still does at /srv/app/render.js:48:11 (renderRows)',
      '[Perf] The event loop has been blocked for N ms and still is',
    ]);
    expect(stdout).toBe('');
  }, 30_000);

  it('is nothing where samples meet an idle loop, until one is let in no more', async () => {
    const { said } = await run('--idle');
    expect(said.slice(2)).toEqual([
      '[Perf] The loop was idle so far',
      expect.stringContaining('[Perf] The event loop has been blocked for N ms and still is'),
    ]);
  }, 30_000);

  it('is not hours long under fake timers that a test has set before its application boots', async () => {
    const { longestMs } = await run('--fake-hrtime');
    expect(longestMs).toBeGreaterThan(1_000);
    expect(longestMs).toBeLessThan(60_000);
  }, 30_000);

  it.each(['--silent', '--debugged'])(
    'is nothing with %s: `stack: false`, a breakpoint',
    async (option) => {
      const { stdout, said } = await run(option);
      expect([stdout, said]).toEqual(['', []]);
    },
    30_000,
  );
});

describe.each(nodeBinaries())('under the permission model on $name', ({ execPath, major }) => {
  const obstacle = async (...allowed: string[]): Promise<string> => {
    const flag = major >= 22 ? '--permission' : '--experimental-permission';
    const script = `import(${JSON.stringify(built('src/event-loop/sampler-worker.js'))}).then((it) => console.log(it.samplerObstacle()))`;
    const flags = [flag, '--allow-fs-read=*', ...allowed];
    return (await promisify(execFile)(execPath, [...flags, '--eval', script])).stdout.trim();
  };

  it.runIf(major < 24)('says that no flag can help', async () => {
    const none = 'the permission model is on, and this version of Node has no `--allow-inspector`';
    expect([await obstacle(), await obstacle('--allow-worker')]).toEqual([none, none]);
  });

  it.runIf(major >= 24)('names the flags that are missing, and no other', async () => {
    const without = 'the permission model is on without';
    expect([
      await obstacle(),
      await obstacle('--allow-worker'),
      await obstacle('--allow-inspector'),
      await obstacle('--allow-worker', '--allow-inspector'),
    ]).toEqual([
      `${without} \`--allow-inspector\` and \`--allow-worker\``,
      `${without} \`--allow-inspector\``,
      `${without} \`--allow-worker\``,
      'null',
    ]);
  });
});
