import { appendFile, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { isAbsolute, join, resolve } from 'node:path';
import { lockFile, type FileLock } from '../core/file-lock.js';
import { makeFolder } from '../core/make-folder.js';
import { object, optionError } from '../core/option.js';
import { PerfError } from '../core/perf.error.js';
import { folderPath } from '../core/shared-options.js';
import { within } from '../core/within.js';
import { workingDirectory } from '../core/working-directory.js';
import type { TimeRange } from '../ports/history.js';
import type { HistoryStore, HistoryStoreHost, OpenHistoryStore } from './history-store.js';
import { EncodedWindow } from './rows/encoded-window.js';
import { encodeFrame, readFrames, type HistoryRow } from './rows/row.js';
import { DAY_MS, HOUR_MS, type Tier } from './rows/tiers.js';

export interface FileHistoryOptions {
  /** The folder of its files, made when it is missing. One process writes to it; every worker of a cluster needs its own. */
  directory: string;
}

const shape = object({ directory: folderPath });

/** A lock that is free is taken in less, milliseconds. */
const TAKEN_MS = 200;

/**
 * Keeps the history in a folder, which only its owner may read: `node:fs` alone, no `fsync`. A row is written when its bucket ends
 * or the application closes. Running buckets are written every minute: a crash loses the last minute.
 * @throws PERF_ERR_OPTION
 */
export function fileHistory(options: FileHistoryOptions): HistoryStore {
  const { directory } = shape.read(options, 'fileHistory()');
  if (!isAbsolute(directory) && workingDirectory() === null) {
    throw optionError('fileHistory().directory', 'an absolute path, since the working directory is gone', directory);
  }
  const folder = resolve(directory);
  return {
    name: 'file',
    shared: false,
    open: async (host) => {
      makeFolder(folder, 0o700);
      const files = new HistoryFiles(folder, host);
      // A writer waits for a lock whose owner may live; reads need no lock.
      await within(TAKEN_MS, () => files.takeLock());
      return files;
    },
  };
}

/** `5m-2026-11-24.rows`; of minutes an hour's, `1m-2026-11-24T13.rows`. */
const ROWS_FILE = /^(1m|5m|1h)-(\d{4}-\d\d-\d\d)(?:T(\d\d))?\.rows$/;
/** Buckets that have not ended, replaced as a whole. */
const RUNNING = 'running.rows';
/** The interval between searches for old files, milliseconds. */
const SWEEP_MS = HOUR_MS;

class HistoryFiles implements OpenHistoryStore {
  private lock: FileLock | null = null;
  private locking: Promise<void> | null = null;
  private sweptMs = -Infinity;
  private readonly running: string;

  constructor(
    private readonly folder: string,
    private readonly host: HistoryStoreHost,
  ) {
    this.running = join(folder, RUNNING);
  }

  /** Resolves when this process is the one that writes. */
  takeLock(): Promise<void> {
    if (this.lock !== null && this.locking === null) return Promise.resolve();
    this.locking ??= this.openFolder().finally(() => (this.locking = null));
    // The next write rejects with it.
    this.locking.catch(() => {});
    return this.locking;
  }

  async write(finished: readonly HistoryRow[], running: readonly HistoryRow[]): Promise<void> {
    // Another process has taken the folder over while this one was suspended: rows wait until that one has ended.
    if (this.lock?.isHeld === false) this.release();
    await this.takeLock();
    await this.append(finished);
    if (running.length === 0) await rm(this.running, { force: true });
    else {
      await writeFile(`${this.running}.new`, Buffer.concat(running.map(encodeFrame)), { mode: 0o600 });
      await rename(`${this.running}.new`, this.running);
    }
    if (Date.now() - this.sweptMs >= SWEEP_MS) await this.sweep();
  }

  async *read(tier: Tier, { from, to }: TimeRange): AsyncGenerator<HistoryRow> {
    const files = (await this.listFiles()).filter((file) => file.tier === tier && file.to > from && file.from < to);
    const readLatest = async (path: string): Promise<Map<string, HistoryRow>> => {
      const latest = new Map<string, HistoryRow>();
      for (const row of await readRows(path)) {
        if (row.tier !== tier || row.at < from || row.at >= to) continue;
        const key = `${row.instance} ${row.at}`;
        const known = latest.get(key);
        // A bucket only grows: what a killed process left running may be behind its whole row.
        if (known === undefined || readObservedMs(row) >= readObservedMs(known)) latest.set(key, row);
      }
      return latest;
    };
    // First: what ends meanwhile is in a file then. It replaces what another has adopted of a bucket that goes on.
    const running = await readLatest(this.running);
    for (const { path } of files) {
      for (const [key, row] of await readLatest(path)) if (!running.has(key)) yield row;
    }
    yield* running.values();
  }

  async close(): Promise<void> {
    await this.locking?.catch(() => {});
    this.release();
  }

  private async openFolder(): Promise<void> {
    const { folder, host } = this;
    this.lock = await lockFile(join(folder, 'history'), (owner) => inUse(folder, owner), host.signal);
    try {
      // Buckets that a killed process has left running have ended.
      await this.append(await readRows(this.running));
      await rm(this.running, { force: true });
      await this.sweep();
    } catch (error) {
      this.release();
      throw error;
    }
  }

  private release(): void {
    this.lock?.release();
    this.lock = null;
  }

  /** A write that failed may leave a torn row or half of the rows: readers skip the one, and take one of equals. */
  private async append(rows: readonly HistoryRow[]): Promise<void> {
    for (const row of rows) {
      const time = new Date(row.at).toISOString().slice(0, row.tier === '1m' ? 13 : 10);
      await appendFile(join(this.folder, `${row.tier}-${time}.rows`), encodeFrame(row), { mode: 0o600 });
    }
  }

  /** Deletes what is too old, and then the oldest until the rest is small enough. */
  private async sweep(): Promise<void> {
    this.sweptMs = Date.now();
    let bytes = 0;
    const left: { path: string; to: number; size: number }[] = [];
    for (const { path, tier, to } of await this.listFiles()) {
      if (to < this.sweptMs - this.host.keptMs(tier)) await rm(path, { force: true });
      else {
        const { size } = await stat(path);
        bytes += size;
        left.push({ path, to, size });
      }
    }
    for (const { path, size } of left.toSorted((a, b) => a.to - b.to)) {
      if (bytes <= this.host.maxBytes) return;
      await rm(path, { force: true });
      bytes -= size;
    }
  }

  private async listFiles(): Promise<(TimeRange & { path: string; tier: Tier })[]> {
    return (await readdir(this.folder)).flatMap((name) => {
      const [, tier, day, hour] = ROWS_FILE.exec(name) ?? [];
      const from = Date.parse(`${day}T${hour ?? '00'}:00:00Z`);
      if (tier === undefined || Number.isNaN(from)) return [];
      return [
        { path: join(this.folder, name), tier: tier as Tier, from, to: from + (hour === undefined ? DAY_MS : HOUR_MS) },
      ];
    });
  }
}

const readObservedMs = ({ data }: HistoryRow): number => new EncodedWindow(data).process.observedMs;

/** None where there is no file. */
async function readRows(path: string): Promise<HistoryRow[]> {
  try {
    return readFrames(await readFile(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

function inUse(folder: string, owner: string): PerfError {
  return new PerfError(
    'PERF_ERR_STORE',
    `The history in ${folder} is written by ${owner}, and only one process may write to a folder. Give every worker of a cluster its ` +
      'own `directory`, or keep the history of all of them with `redisHistory()`.',
  );
}
