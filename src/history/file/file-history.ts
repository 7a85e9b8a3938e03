import { appendFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { isAbsolute, join, resolve } from 'node:path';
import type { TimeRange } from '../../ports/history.js';
import { lockFile, type FileLock } from '../../core/file-lock.js';
import { makeFolder } from '../../core/make-folder.js';
import { object, optionError } from '../../core/option.js';
import { folderPath } from '../../core/shared-options.js';
import { PerfError } from '../../core/perf.error.js';
import { within } from '../../core/within.js';
import { workingDirectory } from '../../core/working-directory.js';
import type { HistoryStore, HistoryStoreHost, OpenHistoryStore } from '../history-store.js';
import type { HistoryRow } from '../rows/row.js';
import { readObservedMs } from '../rows/window-codec.js';
import { DAY_MS, HOUR_MS, findRule, TIERS, type Tier } from '../rows/tiers.js';
import { encodeFrame, readRows } from './rows-file.js';

export interface FileHistoryOptions {
  /** The folder of its files, made when it is missing. One process writes to it; every worker of a cluster needs its own. */
  directory: string;
}

const shape = object({
  directory: folderPath,
});

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
      await within(TAKEN_MS, () => files.locked());
      return files;
    },
  };
}

/** `5m-2026-11-24.rows`; of minutes an hour's, `1m-2026-11-24T13.rows`. */
const ROWS_FILE = /^(1m|5m|1h)-(\d{4}-\d\d-\d\d)(?:T(\d\d))?\.rows$/;
/** Buckets that have not ended, replaced as a whole. */
const RUNNING = 'running.rows';

interface RowsFile {
  readonly path: string;
  readonly tier: Tier;
  /** Buckets from here to there. */
  readonly from: number;
  readonly to: number;
}

/** A lock that is free is taken in less, milliseconds. */
const TAKEN_MS = 200;

/** The interval between searches for old files, milliseconds. */
const SWEEP_MS = HOUR_MS;

class HistoryFiles implements OpenHistoryStore {
  private lock: FileLock | null = null;
  private locking: Promise<void> | null = null;
  private sweptMs = -Infinity;

  constructor(
    private readonly folder: string,
    private readonly host: HistoryStoreHost,
  ) {}

  /** Resolves when this process is the one that writes. */
  locked(): Promise<void> {
    if (this.lock !== null && this.locking === null) return Promise.resolve();
    this.locking ??= this.open().finally(() => (this.locking = null));
    // The next write rejects with it.
    this.locking.catch(() => {});
    return this.locking;
  }

  private async open(): Promise<void> {
    this.lock = await lockFile(join(this.folder, 'history'), (owner) => inUse(this.folder, owner), this.host.signal);
    try {
      await this.adopt();
      await this.sweep();
    } catch (error) {
      this.release();
      throw error;
    }
  }

  async write(finished: readonly HistoryRow[], running: readonly HistoryRow[]): Promise<void> {
    // Another process has taken the folder over while this one was suspended: rows wait until that one has ended.
    if (this.lock?.isHeld === false) this.release();
    await this.locked();
    await this.append(finished);
    const path = join(this.folder, RUNNING);
    if (running.length === 0) await rm(path, { force: true });
    else {
      await writeFile(`${path}.new`, Buffer.concat(running.map(encodeFrame)), { mode: 0o600 });
      await rename(`${path}.new`, path);
    }
    if (Date.now() - this.sweptMs >= SWEEP_MS) await this.sweep();
  }

  async *read(tier: Tier, range: TimeRange): AsyncGenerator<HistoryRow> {
    const files = (await this.rowsFiles()).filter(
      (file) => file.tier === tier && file.to > range.from && file.from < range.to,
    );
    const readLatest = async (path: string): Promise<Map<string, HistoryRow>> => {
      const latest = new Map<string, HistoryRow>();
      for (const row of await readRows(path)) {
        if (row.tier !== tier || row.at < range.from || row.at >= range.to) continue;
        const known = latest.get(makeKey(row));
        // A bucket only grows: what a killed process left running may be behind its whole row.
        if (known === undefined || readObservedMs(row.data) >= readObservedMs(known.data))
          latest.set(makeKey(row), row);
      }
      return latest;
    };
    // First: what ends meanwhile is in a file then. It replaces what another has adopted of a bucket that goes on.
    const running = await readLatest(join(this.folder, RUNNING));
    for (const { path } of files) {
      for (const [key, row] of await readLatest(path)) if (!running.has(key)) yield row;
    }
    yield* running.values();
  }

  async close(): Promise<void> {
    await this.locking?.catch(() => {});
    this.release();
  }

  private release(): void {
    this.lock?.release();
    this.lock = null;
  }

  /** A write that failed may leave a torn row or half of the rows: readers skip the one, and take one of equals. */
  private async append(rows: readonly HistoryRow[]): Promise<void> {
    for (const row of rows) await appendFile(join(this.folder, nameFile(row)), encodeFrame(row), { mode: 0o600 });
  }

  /** Takes over what a killed process has left running: its buckets have ended. */
  private async adopt(): Promise<void> {
    const path = join(this.folder, RUNNING);
    await this.append(await readRows(path));
    await rm(path, { force: true });
  }

  /** Deletes what is too old, and then the oldest until the rest is small enough. */
  private async sweep(): Promise<void> {
    this.sweptMs = Date.now();
    let bytes = 0;
    const left: (RowsFile & { size: number })[] = [];
    for (const file of await this.rowsFiles()) {
      if (file.to < this.sweptMs - this.host.keptMs(file.tier)) await rm(file.path, { force: true });
      else {
        const { size } = await stat(file.path);
        bytes += size;
        left.push({ ...file, size });
      }
    }
    for (const { path, size } of left.toSorted((a, b) => a.to - b.to)) {
      if (bytes <= this.host.maxBytes) return;
      await rm(path, { force: true });
      bytes -= size;
    }
  }

  private async rowsFiles(): Promise<RowsFile[]> {
    const names = await readdir(this.folder);
    return names.flatMap((name) => {
      const [, tier, day, hour] = ROWS_FILE.exec(name) ?? [];
      const from = Date.parse(`${day}T${hour ?? '00'}:00:00Z`);
      if (tier === undefined || Number.isNaN(from)) return [];
      const to = from + (hour === undefined ? DAY_MS : HOUR_MS);
      return [{ path: join(this.folder, name), tier: tier as Tier, from, to }];
    });
  }
}

const makeKey = ({ instance, tier, at }: HistoryRow): string => `${instance} ${tier} ${at}`;

function nameFile({ tier, at }: HistoryRow): string {
  const time = new Date(at).toISOString();
  return `${tier}-${time.slice(0, findRule(tier) === TIERS[0] ? 13 : 10)}.rows`;
}

function inUse(folder: string, owner: string): PerfError {
  return new PerfError(
    'PERF_ERR_STORE',
    `The history in ${folder} is written by ${owner}, and only one process may write to a folder. Give every worker of a cluster its ` +
      'own `directory`, or keep the history of all of them with `redisHistory()`.',
  );
}
