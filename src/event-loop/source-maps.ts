import { readFileSync, statSync } from 'node:fs';
import { findSourceMap, SourceMap, type SourceMapPayload } from 'node:module';
import { dirname, isAbsolute, posix, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Frame } from './frame.js';

/** Larger maps belong to bundles; parsing one would itself be a block. */
const MAX_MAP_BYTES = 20_000_000;
const MAX_FILES = 200;
const COMMENT = '//# sourceMappingURL=';
const INLINE = /^data:application\/json[^,]*;base64,/;

/** Where a position is in the source that the user wrote. */
export interface Position {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/**
 * Reads `sourceMappingURL` comments: Node itself knows source maps only with `--enable-source-maps`, which is for the whole
 * process and not ours to switch on. Files are read once; only positions of blocks are asked for.
 */
export class SourceMaps {
  private readonly maps = new Map<string, SourceMap | null>();

  constructor(private readonly workingDirectory: string) {}

  /** `file:line:column`, relative to the working directory where the file lies in it. */
  locationOf(frame: Frame): string | null {
    if (frame.file === null) return null;
    const { file, line, column } = this.resolve(frame.file, frame.line, frame.column);
    return `${this.shortened(file)}:${line}:${column}`;
  }

  /** Never throws: a map that cannot be read leaves the position as it is. */
  resolve(fileOrUrl: string, line: number, column: number): Position {
    const file = pathOf(fileOrUrl);
    const entry = this.mapOf(file)?.findEntry(line - 1, column - 1);
    if (entry === undefined || !('originalSource' in entry) || entry.originalSource === undefined) {
      return { file, line, column };
    }
    return {
      file: sourcePath(file, entry.originalSource),
      line: entry.originalLine + 1,
      column: entry.originalColumn + 1,
    };
  }

  private shortened(file: string): string {
    if (!isAbsolute(file)) return file;
    const path = relative(this.workingDirectory, file);
    const inside = path !== '' && !path.startsWith('..') && !isAbsolute(path);
    return (inside ? path : file).split(sep).join('/');
  }

  private mapOf(file: string): SourceMap | null {
    const known = this.maps.get(file);
    if (known !== undefined) return known;
    if (this.maps.size >= MAX_FILES) this.maps.clear();
    let map: SourceMap | null = null;
    try {
      // Node has it when it was started with `--enable-source-maps`.
      map = findSourceMap(file) ?? readMap(file);
    } catch {
      // No map, a broken one, or a file that is gone: the position in the compiled code is still true.
    }
    this.maps.set(file, map);
    return map;
  }
}

function readMap(file: string): SourceMap | null {
  if (!isAbsolute(file) || statSync(file).size > MAX_MAP_BYTES) return null;
  const code = readFileSync(file, 'utf8');
  const at = code.lastIndexOf(COMMENT);
  if (at < 0) return null;
  const url = code
    .slice(at + COMMENT.length)
    .split(/[\r\n]/, 1)[0]!
    .trim();
  const inline = INLINE.exec(url);
  let text: string;
  if (inline !== null) text = Buffer.from(url.slice(inline[0].length), 'base64').toString('utf8');
  else {
    const path = resolve(dirname(file), decodeURIComponent(url));
    if (statSync(path).size > MAX_MAP_BYTES) return null;
    text = readFileSync(path, 'utf8');
  }
  const payload = JSON.parse(text) as SourceMapPayload;
  const root = payload.sourceRoot ?? '';
  // `findEntry` does not apply the root.
  const sources = root === '' ? payload.sources : payload.sources.map((source) => posix.join(root, source));
  return new SourceMap({ ...payload, sources });
}

/** Sources are relative to the map, which tools put beside the file. */
function sourcePath(file: string, source: string): string {
  if (source.startsWith('file:')) return pathOf(source);
  // `webpack://app/./src/main.ts`
  const path = source.replace(/^[a-z][\w+.-]*:\/\/[^/]*\/(?:\.\/)?/i, '');
  return path === source ? resolve(dirname(file), source) : path;
}

function pathOf(fileOrUrl: string): string {
  if (!fileOrUrl.startsWith('file:')) return fileOrUrl;
  try {
    return fileURLToPath(fileOrUrl);
  } catch {
    return fileOrUrl;
  }
}
