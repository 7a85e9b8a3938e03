import { closeSync, openSync, readSync } from 'node:fs';
import { onlyNumber } from './kernel-text.js';
import { Pace } from './pace.js';

/**
 * Limits are changed in place (Kubernetes resizes, `docker update`, systemd), but seldom, and are a third of all reads
 * where several levels have some. So a change is noticed within this time.
 */
const RARE_EVERY_MS = 5_000;

/** The longest file that is read whole is `memory.stat`, 1 to 4 kB. */
const BUFFER_BYTES = 16 * 1024;

/**
 * The kernel files of one sampler. A kept descriptor and a synchronous read cost about 1 µs (`memory.stat` 3 to 8 µs);
 * opening the file anew costs five times that, the promise form a hundred times, and neither spares the event loop
 * anything: these files are made in the kernel and never wait for a disk.
 */
export class KernelFiles {
  /** One buffer for every file. */
  readonly buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  /** A cgroup was removed under a kept descriptor: what was found is out of date. */
  gone = false;
  private files: KernelFile[] = [];

  /**
   * @param root Put before every path.
   * @param keep Keep descriptors. Only kernel file systems show the present through a kept one; ordinary files, such as
   *   a copied tree, may be replaced under it, so they are opened for every read.
   */
  constructor(
    private readonly root: string,
    public keep: boolean,
  ) {}

  file(path: string): KernelFile {
    const file = new KernelFile(this, `${this.root}${path}`);
    this.files.push(file);
    return file;
  }

  /** How often to read what changes rarely. Each time where every read opens its file: there the cost is no argument. */
  rarely(): Pace {
    return new Pace(this.keep ? RARE_EVERY_MS : 0);
  }

  /** Closes every descriptor. Files that are read later work, but are opened for every read. */
  close(): void {
    this.keep = false;
    this.release();
  }

  /** Closes every descriptor and forgets the files. */
  release(): void {
    for (const file of this.files) file.close();
    this.files = [];
    this.gone = false;
  }
}

/** One kernel file. */
export class KernelFile {
  private descriptor: number | null = null;
  /** It cannot be read; not tried again by this object, because a failing open costs more than all other reads. */
  private unreadable = false;

  constructor(
    private readonly files: KernelFiles,
    private readonly path: string,
  ) {}

  /** Its text; null when it is missing, empty or cannot be read. Never throws. */
  read(): string | null {
    const length = this.fill();
    return length === 0 ? null : this.files.buffer.toString('latin1', 0, length);
  }

  /** The number that is its whole content, read without making a string of it; see {@link read}. */
  number(): number | null {
    const length = this.fill();
    return length === 0 ? null : onlyNumber(this.files.buffer, length);
  }

  /** Reads it into the shared buffer; 0 bytes stand for every failure. */
  private fill(): number {
    if (this.unreadable) return 0;
    try {
      this.descriptor ??= openSync(this.path, 'r');
      return readSync(this.descriptor, this.files.buffer, 0, BUFFER_BYTES, 0);
    } catch (error) {
      // The answer to every failure is "unknown"; only a removed cgroup also means that another one must be looked for.
      if ((error as NodeJS.ErrnoException).code === 'ENODEV') this.files.gone = true;
      this.close();
      this.unreadable = this.files.keep;
      return 0;
    } finally {
      if (!this.files.keep) this.close();
    }
  }

  close(): void {
    if (this.descriptor !== null) closeSync(this.descriptor);
    this.descriptor = null;
  }
}
