import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { folder, recordingOf, run, runDiff, serve } from '../../fixtures/load-command.js';

const reportIn = (file: string) => JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;

describe('the file of a run', { timeout: 120_000 }, () => {
  it('holds why it failed', async () => {
    const gone = 'http://127.0.0.1:1';
    const ran = await runDiff(recordingOf([{ url: '/' }]), [gone, gone, gone]);
    expect(ran.json).toEqual({ command: 'diff', exitCode: 64, error: ran.stderr.trimEnd() });
    expect(ran.stderr).toMatch(/^--\w+ http:\S+ does not answer: ECONNREFUSED\n$/);
  });

  it('is written, and the exit code is true, where nobody reads what is printed; an older one is gone from the start', async () => {
    const json = join(folder, 'unread.json');
    writeFileSync(json, '{"command":"ramp","exitCode":0}');
    let begun: string | undefined;
    const url = await serve((_, response) => {
      begun ??= readFileSync(json, 'utf8');
      response.end();
    });
    const args = ['ramp', url, '--start', '20', '--steps', '1,2', '--hold', '1s', '--rest', '0s', '--json', json];
    const child = spawn('node', ['build/packages/load/src/main.js', ...args]);
    child.stdout.destroy();
    let complaints = '';
    child.stderr.on('data', (data) => (complaints += String(data)));
    const [exitCode] = (await once(child, 'close')) as [number | null];
    expect([complaints, begun]).toEqual(['', '']);
    expect(reportIn(json)).toMatchObject({
      exitCode,
      steps: expect.arrayContaining([expect.objectContaining({ requests: 20 })]),
    });
  });

  it('is never the recording, and is asked for before any load', async () => {
    let asked = false;
    const url = await serve((_, response) => {
      asked = true;
      response.end();
    });
    const file = recordingOf([{ url: '/' }]);
    const was = readFileSync(file);
    const start = (...args: string[]): Promise<[unknown, string]> =>
      new Promise((resolve) => {
        const child = spawn('node', ['build/packages/load/src/main.js', ...args]);
        let said = '';
        child.stderr.on('data', (data) => (said += String(data)));
        child.once('close', (code) => resolve([code, said]));
      });
    const itself = `--json ${file} is the recording itself: name another file.\n`;
    expect(await start('replay', file, '--target', url, '--json', file)).toEqual([64, itself]);
    expect(await start('ramp', url, '--from', file, '--json', file)).toEqual([64, itself]);
    expect(readFileSync(file)).toEqual(was);
    const [code, said] = await start('ramp', url, '--json', '/nowhere/a.json');
    expect(said).toMatch(/^--json \/nowhere\/a\.json cannot be written: ENOENT/);
    expect([code, asked]).toEqual([64, false]);
  });

  it('has no ramp whose steps have no requests', async () => {
    const none = await run('ramp', 'http://127.0.0.1:1', '--hold', '0s');
    expect(none.stderr).toBe('--hold must be above 0: a step without requests holds nothing.\n');
    expect(none.status).toBe(64);
  });
});
