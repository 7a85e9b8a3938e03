import { exec, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { Report } from '../../../packages/load/src/report.js';
import { folder, recordingOf, run, runDiff, serve } from './cli.js';

const OLD = '{"command":"ramp","exitCode":0}';
const reportIn = (file: string) => JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;

/** A ramp over the report of an older run, stopped after its first step. */
async function stopped(signal: NodeJS.Signals) {
  const [json, html] = [join(folder, 'stopped.json'), join(folder, 'stopped.html')];
  writeFileSync(json, OLD);
  let begun: unknown;
  const url = await serve((_, response) => {
    begun ??= reportIn(json);
    response.end();
  });
  const args = ['ramp', url, '--start', '20', '--steps', '1,2', '--hold', '1s', '--rest', '0s'];
  const child = spawn('node', ['build/packages/load/src/main.js', ...args, '--json', json, '--html', html]);
  let said = '';
  child.stdout.on('data', (data) => {
    said += String(data);
    if (/^1X/m.test(said)) child.kill(signal);
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, begun, json: reportIn(json), html: readFileSync(html, 'utf8') };
}

describe('the files of a run', { timeout: 120_000 }, () => {
  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)(
    'hold what is known when %s stops it, and nothing of an older run from its start',
    async (signal, exit) => {
      const ran = await stopped(signal);
      expect(ran.begun).toEqual({ command: 'ramp', exitCode: null, error: 'It has not ended.' });
      expect(ran.code).toBe(exit);
      expect(ran.json).toMatchObject({
        command: 'ramp',
        exitCode: exit,
        error: `It was stopped by ${signal}.`,
        steps: [{ factor: 1, requests: 20 }],
      });
      expect(ran.html).toContain(`<h1>nestjs-perf-load ramp: ${exit}</h1>`);
      expect(ran.html).toContain('1X');
    },
  );

  it('hold why it failed', async () => {
    const gone = 'http://127.0.0.1:1';
    const ran = await runDiff(recordingOf([{ url: '/' }]), [gone, gone, gone]);
    expect(ran.json).toEqual({ command: 'diff', exitCode: 64, error: ran.stderr.trimEnd() });
    expect(ran.stderr).toMatch(/^--\w+ http:\S+ does not answer: ECONNREFUSED\n$/);
  });

  it('hold what was measured, and how it ended, where the other one cannot be written any more', async () => {
    const gone = mkdtempSync(join(folder, 'gone-'));
    const url = await serve((_, response) => {
      rmSync(gone, { recursive: true, force: true });
      response.end();
    });
    const ran = await run('replay', recordingOf([{ url: '/' }]), '--target', url, '--html', join(gone, 'a.html'));
    expect(ran.stderr).toMatch(/^--html \S+ cannot be written: ENOENT.*\n$/);
    expect(ran.status).toBe(64);
    expect(ran.json).toMatchObject({ exitCode: 64, requests: 1, error: ran.stderr.trimEnd() });
  });

  it.skipIf(process.platform === 'win32')('are written once where one is a pipe', async () => {
    const url = await serve((_, response) => response.end());
    const args = ['replay', recordingOf([{ url: '/' }]), '--target', url, '--json', '/dev/fd/3'];
    const command = `node build/packages/load/src/main.js ${args.join(' ')} 3>&1 >/dev/null | cat`;
    const { stdout } = await promisify(exec)(command);
    expect(JSON.parse(stdout)).toMatchObject({ command: 'replay', requests: 1 });
    expect(() => new Report('ramp', { html: '/dev/null', json: '/dev/null' }, undefined)).not.toThrow();
  });

  it('are written, and the exit code is true, where nobody reads what is printed', async () => {
    const json = join(folder, 'unread.json');
    const url = await serve((_, response) => response.end());
    const args = ['ramp', url, '--start', '20', '--steps', '1,2', '--hold', '1s', '--rest', '0s', '--json', json];
    const child = spawn('node', ['build/packages/load/src/main.js', ...args]);
    child.stdout.destroy();
    let complaints = '';
    child.stderr.on('data', (data) => (complaints += String(data)));
    const [exitCode] = (await once(child, 'close')) as [number | null];
    expect(complaints).toBe('');
    expect(reportIn(json)).toMatchObject({
      exitCode,
      steps: expect.arrayContaining([expect.objectContaining({ requests: 20 })]),
    });
  });

  it('are never the recording, by whatever name, nor each other: it is as it was', async () => {
    const url = await serve((_, response) => response.end());
    const file = recordingOf([{ url: '/' }]);
    const link = join(folder, 'link.html');
    symlinkSync(file, link);
    const was = readFileSync(file);
    const target = ['--target', url];
    for (const args of [
      ['replay', file, ...target, '--html', link],
      ['replay', link, ...target, '--html', file],
      ['ramp', url, '--from', file, '--html', file],
    ]) {
      const ran = await run(...args);
      expect(ran.stderr).toBe(`--html ${args.at(-1)} is the recording itself: name another file.\n`);
      expect([ran.status, ran.json]).toEqual([64, null]);
    }
    const own = { html: join(folder, 'fresh.html'), json: `${folder}/./fresh.html` };
    expect(() => new Report('replay', own, file)).toThrow(
      `--html and --json are one file, ${own.json}: name another one.`,
    );
    expect(readFileSync(file)).toEqual(was);
  });

  it('are asked for before any load, and a step without any is refused', async () => {
    let asked = false;
    const url = await serve((_, response) => {
      asked = true;
      response.end();
    });
    const ran = await run('ramp', url, '--hold', '1s', '--html', '/nowhere/a.html');
    expect(ran.stderr).toMatch(/^--html \/nowhere\/a\.html cannot be written: ENOENT/);
    expect(ran.json).toEqual({ command: 'ramp', exitCode: 64, error: ran.stderr.trimEnd() });
    expect([ran.status, asked]).toEqual([64, false]);
    const none = await run('ramp', url, '--hold', '0s');
    expect(none.stderr).toBe('--hold must be above 0: a step without requests holds nothing.\n');
    expect([none.status, asked]).toEqual([64, false]);
  });
});
