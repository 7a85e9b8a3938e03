import { mkdirSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { appendFile, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { isAbsolute, join, resolve } from 'node:path';
import { object, optionError } from '../core/option.js';
import { folderPath } from '../core/shared-options.js';
import { workingDirectory } from '../core/working-directory.js';
import type { TimeRange } from '../ports/history.js';
import type { HistoryStore, HistoryStoreHost, OpenHistoryStore } from './history-store.js';
import { encodeFrame, readFrames, type HistoryRow } from './rows/row.js';
import { DAY_MS, HOUR_MS, type Tier } from './rows/tiers.js';

export interface FileHistoryOptions {
  /** The folder of its files, made when it is missing. */
  directory: string;
}

const shape = object({ directory: folderPath });

/**
 * Keeps the history in a folder, which only its owner may read: `node:fs` alone, no `fsync`. A row is written when its bucket ends
 * or the application closes. Running buckets are written every minute: a crash loses the last minute.
 * Processes may share a folder: each reads the rows of all.
 * @throws PERF_ERR_OPTION
 */
export function fileHistory(options: FileHistoryOptions): HistoryStore {
  const { directory } = shape.read(options, 'fileHistory');
  if (!isAbsolute(directory) && workingDirectory() === null) {
    throw optionError('fileHistory.directory', 'an absolute path, since the working directory is gone', directory);
  }
  const folder = resolve(directory);
  return {
    name: 'file',
    shared: false,
    open: async (host) => {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      return new HistoryFiles(folder, host);
    },
  };
}

/** A file has one day of a tier, `5m-2026-11-24.rows`; or one hour of minutes, `1m-2026-11-24T13.rows`. */
const ROWS_FILE = /^(1m|5m|1h)-(\d{4}-\d\d-\d\d)(?:T(\d\d))?\.rows$/;
/** Running buckets of one process, replaced as a whole. A process that was killed leaves its file. */
const RUNNING_FILE = /^running-[\w-]+\.rows$/;
/** The interval between searches for old files, milliseconds. */
const SWEEP_MS = HOUR_MS;

interface RowsFile extends TimeRange {
  readonly path: string;
  /** Null for running buckets, of all tiers. */
  readonly tier: Tier | null;
}

class HistoryFiles implements OpenHistoryStore {
  private sweptMs = -Infinity;
  private readonly run = randomBytes(6).toString('hex');

  constructor(
    private readonly folder: string,
    private readonly host: HistoryStoreHost,
  ) {}

  /** A failed write may leave a torn row, or write rows again: readers skip the first, and take one of equal rows. */
  async write(finished: readonly HistoryRow[], running: readonly HistoryRow[]): Promise<void> {
    for (const row of finished) {
      const time = new Date(row.at).toISOString().slice(0, row.tier === '1m' ? 13 : 10);
      await appendFile(join(this.folder, `${row.tier}-${time}.rows`), encodeFrame(row), { mode: 0o600 });
    }
    const path = join(this.folder, `running-${this.run}.rows`);
    if (running.length === 0) await rm(path, { force: true });
    else {
      const next = join(this.folder, `running-${this.run}-next.rows`);
      await writeFile(next, Buffer.concat(running.map(encodeFrame)), { mode: 0o600 });
      await rename(next, path);
    }
    if (Date.now() - this.sweptMs >= SWEEP_MS) await this.sweep();
  }

  async *read(tier: Tier, { from, to }: TimeRange): AsyncGenerator<HistoryRow> {
    const isWanted = (row: HistoryRow): boolean => row.tier === tier && row.at >= from && row.at < to;
    // Running buckets first: one that ends meanwhile is read from its tier's file.
    const runs = (await this.listFiles()).filter((file) => file.tier === null);
    const running = keepLast((await Promise.all(runs.map(({ path }) => readRows(path)))).flat().filter(isWanted));
    for (const file of await this.listFiles()) {
      if (file.tier !== tier || file.to <= from || file.from >= to) continue;
      for (const [key, row] of keepLast((await readRows(file.path)).filter(isWanted))) {
        // The finished row replaces a running one that a killed process has left.
        running.delete(key);
        yield row;
      }
    }
    yield* running.values();
  }

  async close(): Promise<void> {}

  /** Deletes files that are too old, and then the oldest until the others are small enough. */
  private async sweep(): Promise<void> {
    this.sweptMs = Date.now();
    let bytes = 0;
    const left: { path: string; to: number; size: number }[] = [];
    for (const { path, tier, ...range } of await this.listFiles()) {
      const { size, mtimeMs } = await stat(path);
      const to = tier === null ? mtimeMs + HOUR_MS : range.to;
      if (to < this.sweptMs - this.host.keptMs(tier ?? '1h')) await rm(path, { force: true });
      else {
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

  private async listFiles(): Promise<RowsFile[]> {
    return (await readdir(this.folder)).flatMap((name): RowsFile[] => {
      const path = join(this.folder, name);
      if (RUNNING_FILE.test(name)) return [{ path, tier: null, from: -Infinity, to: Infinity }];
      const [, tier, day, hour] = ROWS_FILE.exec(name) ?? [];
      const from = Date.parse(`${day}T${hour ?? '00'}:00:00Z`);
      if (tier === undefined || Number.isNaN(from)) return [];
      return [{ path, tier: tier as Tier, from, to: from + (hour === undefined ? DAY_MS : HOUR_MS) }];
    });
  }
}

/** The last row of each bucket and process: a bucket only grows. */
const keepLast = (rows: readonly HistoryRow[]): Map<string, HistoryRow> =>
  new Map(rows.map((row) => [`${row.instance} ${row.at}`, row]));

/** None where there is no file. */
async function readRows(path: string): Promise<HistoryRow[]> {
  try {
    return readFrames(await readFile(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
