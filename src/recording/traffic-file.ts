import { randomBytes } from 'node:crypto';
import { createReadStream, createWriteStream, existsSync, mkdirSync, openSync, type WriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { PerfError } from '../core/perf.error.js';
import { describeReason } from '../core/reason.js';

/** Lines that wait for a slow disk, bytes. More, and the recording ends. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024;
const OWNER_ONLY = 0o600;

/** A line of the file, by its number from 0: as it was written, changed, or null for one that is left out. */
export type EditLine = (line: string, index: number) => string | null;

/** One recording on disk: `….part` while it runs. */
export class TrafficFile {
  private readonly gzip = createGzip();
  private readonly part: string;
  /** Settles when all is on disk; rejects when the file cannot be written any more. */
  readonly written: Promise<void>;

  private constructor(
    readonly path: string,
    out: WriteStream,
  ) {
    this.part = `${path}.part`;
    this.written = pipeline(this.gzip, out);
    // `finish()`, which may come much later, throws the error.
    this.written.catch(() => undefined);
  }

  /** @throws PERF_ERR_RECORDING when the directory cannot be written to */
  static open(directory: string, nowMs: number): TrafficFile {
    const time = new Date(nowMs).toISOString().replaceAll(/[:.]/g, '-');
    const path = join(directory, `traffic-${time}-${randomBytes(3).toString('hex')}.ndjson.gz`);
    try {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      const fd = openSync(`${path}.part`, 'wx', OWNER_ONLY);
      return new TrafficFile(path, createWriteStream('', { fd }));
    } catch (error) {
      throw new PerfError(
        'PERF_ERR_RECORDING',
        `\`record.directory\` "${directory}" cannot be written to: ${(error as Error).message}. Name a directory that this process may ` +
          'write to; with a read-only root file system, mount a volume there (Kubernetes: `emptyDir`).',
        { cause: error },
      );
    }
  }

  /** False: the disk cannot follow, and the line is not taken. */
  write(line: string): boolean {
    if (this.gzip.destroyed || this.gzip.writableLength > MAX_WAITING_BYTES) return false;
    this.gzip.write(`${line}\n`);
    return true;
  }

  /** Ends the file. With `edit`, each line goes through it. Where that fails, what was recorded stays as `….part`. */
  async finish(edit: EditLine | null): Promise<void> {
    try {
      this.gzip.end();
      await this.written;
      if (edit === null) await rename(this.part, this.path);
      else await this.rewrite(edit);
    } catch (error) {
      const kept = existsSync(this.part) ? ` What was written stays in ${this.part}.` : '';
      throw new PerfError(
        'PERF_ERR_RECORDING',
        `The recording could not be written: ${describeReason(error)}. Is there room in \`record.directory\`?${kept}`,
        { cause: error },
      );
    }
  }

  private async rewrite(edit: EditLine): Promise<void> {
    const fresh = `${this.part}2`;
    try {
      const out = createWriteStream(fresh, { flags: 'wx', mode: OWNER_ONLY });
      const lines = createGunzip().setEncoding('utf8');
      await pipeline(createReadStream(this.part), lines, (texts) => edited(texts, edit), createGzip(), out);
      await rename(fresh, this.path);
    } catch (error) {
      await rm(fresh, { force: true });
      throw error;
    }
    await rm(this.part);
  }
}

async function* edited(texts: AsyncIterable<string>, edit: EditLine): AsyncGenerator<string> {
  let [index, rest] = [0, ''];
  for await (const text of texts) {
    const lines = (rest + text).split('\n');
    rest = lines.pop()!;
    for (const line of lines) {
      const kept = edit(line, index++);
      if (kept !== null) yield `${kept}\n`;
    }
  }
}
