import type { KernelFile, KernelFiles } from './kernel-file.js';
import { secondNumber } from './kernel-text.js';

/** Page sizes that Linux uses on the architectures of Node. */
const PAGE_BYTES = [4_096, 16_384, 65_536] as const;

/**
 * The process's resident memory from a kept descriptor of `statm`, which counts pages: a fifth of the time of
 * `process.memoryUsage.rss()`, which opens a file for each call. Node does not tell the page size, so it is found once by
 * comparing the two; where they do not fit, Node's call is used.
 */
export class ProcessMemory {
  private readonly statm: KernelFile;
  private readonly pageBytes: number | null;

  constructor(files: KernelFiles) {
    this.statm = files.file('/proc/self/statm');
    const pages = this.residentPages();
    const rssBytes = process.memoryUsage.rss();
    this.pageBytes =
      pages === null ? null : (PAGE_BYTES.find((size) => Math.abs(pages * size - rssBytes) < rssBytes / 4) ?? null);
  }

  rssBytes(): number {
    const pages = this.pageBytes === null ? null : this.residentPages();
    return pages === null ? process.memoryUsage.rss() : pages * this.pageBytes!;
  }

  private residentPages(): number | null {
    const text = this.statm.read();
    const pages = text === null ? null : secondNumber(text);
    return pages === null || pages <= 0 ? null : pages;
  }
}
