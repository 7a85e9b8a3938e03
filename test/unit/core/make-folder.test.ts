import { existsSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeFolder } from '../../../src/core/make-folder.js';

describe('a folder that is needed', () => {
  let root: string;
  beforeEach(() => (root = mkdtempSync(join(tmpdir(), 'perf-folder-'))));
  afterEach(() => rmSync(root, { recursive: true }));

  it('is made with those above it, for its owner alone where that is asked for, and may be there already', () => {
    const folder = join(root, 'a/b/c');
    makeFolder(folder, 0o700);
    makeFolder(folder, 0o700);
    for (const made of ['a', 'a/b', 'a/b/c']) expect(statSync(join(root, made)).mode & 0o777).toBe(0o700);
    symlinkSync(folder, join(root, 'link'));
    makeFolder(join(root, 'link'));
    expect(existsSync(join(root, 'link'))).toBe(true);
  });

  it('says at once where none can be made', () => {
    writeFileSync(join(root, 'file'), '');
    symlinkSync(join(root, 'nowhere'), join(root, 'link'));
    for (const path of [join(root, 'file'), join(root, 'file/below'), join(root, 'link'), join(root, 'link/below')])
      expect(() => makeFolder(path)).toThrow(/EEXIST|ENOTDIR|ENOENT/);
  });

  it.runIf(existsSync('/proc/self'))('says at once where the kernel makes none', () => {
    expect(() => makeFolder('/proc/none/below')).toThrow(/ENOENT.*mkdir '\/proc\/none'/);
  });
});
