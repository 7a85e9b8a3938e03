import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { refuseUncommittedChanges } from '../../bench/harness/index.mjs';

it('a benchmark that writes a result is refused while files differ from the commit that the result names', () => {
  const folder = mkdtempSync(join(tmpdir(), 'perf-bench-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', ...args], { cwd: folder });
  const write = (path: string, text: string): void => writeFileSync(join(folder, path), text);
  git('init', '--quiet');
  mkdirSync(join(folder, 'bench/results'), { recursive: true });
  write('code.ts', 'one');
  write('bench/results/a.json', '{}');
  git('add', '.');
  git('commit', '--quiet', '-m', 'first');
  write('bench/results/a.json', '{ "part": 1 }');
  write('notes.txt', 'not tracked');
  expect(() => refuseUncommittedChanges(folder)).not.toThrow();
  write('code.ts', 'two');
  expect(() => refuseUncommittedChanges(folder)).toThrow(/code\.ts\nCommit them, or pass --no-write/);
});
