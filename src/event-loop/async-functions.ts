import { readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Frame } from './frame.js';

/** Reading a larger file would be a block. */
const MAX_FILE_BYTES = 10_000_000;
const MAX_KNOWN = 500;

/**
 * Tells async functions by their source text: of a function that runs the engine tells where its text begins, not its kind.
 * For the few positions of blocks, each read once.
 */
export class AsyncFunctions {
  private readonly known = new Map<string, boolean | null>();

  /** Null where the text cannot be read: no file, too large a one, or no position. */
  isAsync(frame: Frame): boolean | null {
    const { file, functionLine, functionColumn } = frame;
    if (file === null || functionLine === 0 || functionColumn === 0) return null;
    const key = `${file}:${functionLine}:${functionColumn}`;
    let answer = this.known.get(key);
    if (answer === undefined) {
      answer = read(file, functionLine, functionColumn);
      if (this.known.size >= MAX_KNOWN) this.known.clear();
      this.known.set(key, answer);
    }
    return answer;
  }
}

function read(fileOrUrl: string, line: number, column: number): boolean | null {
  try {
    const file = fileOrUrl.startsWith('file:') ? fileURLToPath(fileOrUrl) : fileOrUrl;
    if (statSync(file).size > MAX_FILE_BYTES) return null;
    const text = readFileSync(file, 'utf8').split(/\r\n|[\n\r\u2028\u2029]/, line)[line - 1];
    return text === undefined ? null : /^async\b/.test(text.slice(column - 1));
  } catch {
    // Code without a file (an evaluated one, or inside an archive), or one that may not be read.
    return null;
  }
}
