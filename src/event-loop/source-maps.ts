import type { SourceMap, SourceMapPayload } from 'node:module';
import type { Mappings, Origin } from './mappings.js';

/** Where a position is in the source that the user wrote. */
export interface Position {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** Of larger ones, reading alone would be a block. */
export const MAX_MAP_BYTES = 10_000_000;

type Finder = Pick<SourceMap | Mappings, 'findEntry'>;

/**
 * Reads `sourceMappingURL` comments: Node itself knows source maps only with `--enable-source-maps`, which is for the whole
 * process and not ours to switch on. Files are read once; only positions of blocks are asked for.
 *
 * The watchdog's thread is given this class as text (see watchdog-source.ts): it must use nothing from outside itself.
 */
export class SourceMaps {
  private readonly maps = new Map<string, Finder | null>();
  private readonly fs = process.getBuiltinModule('node:fs');
  private readonly module = process.getBuiltinModule('node:module');
  private readonly path = process.getBuiltinModule('node:path');
  private readonly url = process.getBuiltinModule('node:url');

  constructor(
    private readonly workingDirectory: string,
    /** Positions in files with larger maps stay those of the compiled code. */
    private readonly maxMapBytes: number,
    private readonly Decoded: typeof Mappings,
  ) {}

  /** `file:line:column`, relative to the working directory where the file lies in it. */
  locationOf(frame: Position | (Omit<Position, 'file'> & { readonly file: null })): string | null {
    if (frame.file === null) return null;
    const { file, line, column } = this.resolve(frame.file, frame.line, frame.column);
    return `${this.shortened(file)}:${line}:${column}`;
  }

  /** Never throws: a map that cannot be read leaves the position as it is. */
  private resolve(fileOrUrl: string, line: number, column: number): Position {
    const file = this.pathOf(fileOrUrl);
    const entry: Partial<Origin> | undefined = this.mapOf(file)?.findEntry(line - 1, column - 1);
    // A source may be null in a map.
    if (typeof entry?.originalSource !== 'string') return { file, line, column };
    return {
      file: this.sourcePath(file, entry.originalSource),
      line: entry.originalLine! + 1,
      column: entry.originalColumn! + 1,
    };
  }

  private shortened(file: string): string {
    const { path } = this;
    if (!path.isAbsolute(file)) return file;
    const below = path.relative(this.workingDirectory, file);
    const inside = below !== '' && !below.startsWith('..') && !path.isAbsolute(below);
    return (inside ? below : file).split(path.sep).join('/');
  }

  private mapOf(file: string): Finder | null {
    const known = this.maps.get(file);
    if (known !== undefined) return known;
    if (this.maps.size >= 200) this.maps.clear();
    let map: Finder | null = null;
    try {
      map = this.readMap(file);
    } catch {
      // No map, a broken one, or a file that is gone: the position in the compiled code is still true.
    }
    this.maps.set(file, map);
    return map;
  }

  private readMap(file: string): Finder | null {
    const { fs, path } = this;
    const comment = '//# sourceMappingURL=';
    if (!path.isAbsolute(file) || fs.statSync(file).size > this.maxMapBytes) return null;
    const code = fs.readFileSync(file, 'utf8');
    const at = code.lastIndexOf(comment);
    // Of code that was compiled while it was loaded, only Node knows the map (with `--enable-source-maps`). It is not asked
    // for others: to build its `SourceMap` takes a second for a bundle.
    if (at < 0) return this.module.findSourceMap(file) ?? null;
    const url = code
      .slice(at + comment.length)
      .split(/[\r\n]/, 1)[0]!
      .trim();
    const inline = /^data:application\/json[^,]*;base64,/.exec(url);
    let text: string;
    if (inline !== null) text = Buffer.from(url.slice(inline[0].length), 'base64').toString('utf8');
    else {
      const mapFile = path.resolve(path.dirname(file), decodeURIComponent(url));
      if (fs.statSync(mapFile).size > this.maxMapBytes) return null;
      text = fs.readFileSync(mapFile, 'utf8');
    }
    const payload = JSON.parse(text) as SourceMapPayload;
    const root = payload.sourceRoot ?? '';
    // `findEntry` does not apply the root.
    const sources = root === '' ? payload.sources : payload.sources.map((source) => path.posix.join(root, source));
    // A map in sections is rare, and Node can read it.
    const Decoder = 'sections' in payload ? this.module.SourceMap : this.Decoded;
    return new Decoder({ ...payload, sources });
  }

  /** Sources are relative to the map, which tools put beside the file. */
  private sourcePath(file: string, source: string): string {
    if (source.startsWith('file:')) return this.pathOf(source);
    // `webpack://app/./src/main.ts`
    const path = source.replace(/^[a-z][\w+.-]*:\/\/[^/]*\/(?:\.\/)?/i, '');
    return path === source ? this.path.resolve(this.path.dirname(file), source) : path;
  }

  private pathOf(fileOrUrl: string): string {
    if (!fileOrUrl.startsWith('file:')) return fileOrUrl;
    try {
      return this.url.fileURLToPath(fileOrUrl);
    } catch {
      return fileOrUrl;
    }
  }
}
