import fs, { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { constants, gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { TrafficFile } from '../../../src/recording/traffic-file.js';
import { uncaughtDuring } from '../../fixtures/uncaught.js';

describe('the file of a recording', () => {
  let folder: string;
  let file: TrafficFile;
  /** As far as it is whole. */
  const textOf = (name: string): string =>
    gunzipSync(readFileSync(name), { finishFlush: constants.Z_SYNC_FLUSH }).toString();
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'perf-traffic-'));
    file = TrafficFile.open(folder, 0);
    for (const line of ['one', 'two', 'three']) file.write(line);
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it("has its name when it is whole, with the lines that were kept, and is its owner's alone", async () => {
    await file.finish((line, index) => (index === 1 ? null : line.toUpperCase()));
    const [name, ...others] = readdirSync(folder);
    expect(others).toEqual([]);
    expect(name).toMatch(/\.ndjson\.gz$/);
    expect(textOf(join(folder, name!))).toBe('ONE\nTHREE\n');
    expect(statSync(join(folder, name!)).mode & 0o777).toBe(0o600);
  });

  it('keeps what was recorded where it cannot be written again, under the name of what is not whole', async () => {
    const edit = (line: string): string => {
      if (line === 'two') throw new Error('no space left');
      return line;
    };
    await expect(file.finish(edit)).rejects.toThrow('no space left');
    const [name, ...others] = readdirSync(folder);
    expect(others).toEqual([]);
    expect(name).toMatch(/\.ndjson\.gz\.part$/);
    expect(textOf(join(folder, name!))).toBe('one\ntwo\nthree\n');
  });

  it('says that it is gone, and ends no process, where somebody has removed it', async () => {
    rmSync(join(folder, readdirSync(folder)[0]!));
    const caught = await uncaughtDuring(() => expect(file.finish((line) => line)).rejects.toThrow('ENOENT'));
    expect(caught).toEqual([]);
  });

  it('says at once where there can be none, and what to do', () => {
    expect(() => TrafficFile.open(join(process.execPath, 'traffic'), 0)).toThrow(
      /^PERF_ERR_RECORDING: `record\.directory` "\/.*\/traffic" cannot be written to: ENOTDIR.* Name a directory that this process may write to/,
    );
  });

  it('keeps what is on disk where there is no room for more, and says where', async () => {
    const part = join(folder, readdirSync(folder)[0]!);
    const full = vi.spyOn(fs, 'write').mockImplementation((...given: unknown[]) => {
      (given.at(-1) as (error: Error) => void)(new Error('ENOSPC: no space left on device, write'));
    });
    onTestFinished(() => full.mockRestore());
    file.write('four');
    await expect(file.finish(null)).rejects.toThrow(
      `PERF_ERR_RECORDING: The recording could not be written: ENOSPC: no space left on device, write. Is there room in \`record.directory\`? What was written stays in ${part}.`,
    );
    expect(existsSync(part)).toBe(true);
  });

  it('takes lines of any length, and whatever they hold', async () => {
    const long = 'ä\u2028€'.repeat(50_000);
    file.write(long);
    const seen: string[] = [];
    await file.finish((line) => {
      seen.push(line);
      return line;
    });
    expect(seen).toEqual(['one', 'two', 'three', long]);
  });
});
