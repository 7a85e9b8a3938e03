import type { SourceMapPayload } from 'node:module';

export interface Position {
  readonly file: string | null;
  readonly line: number;
  readonly column: number;
}
/** Formats a position as `file:line:column`; null where it has no place. */
export type Locate = (position: Position) => string | null;

/** As in Node's `SourceMap`: lines and columns count from 0. */
export interface Origin {
  readonly originalSource: string;
  readonly originalLine: number;
  readonly originalColumn: number;
}
interface Finder {
  findEntry(line: number, column: number): object;
}

/** Finds positions in the user's sources. The sampler's thread runs this class's text (see sampler-source.ts): it uses nothing from outside. */
export class SourceLines {
  private readonly maps = new Map<string, Finder | null>();
  private readonly fs = process.getBuiltinModule('node:fs');
  private readonly module = process.getBuiltinModule('node:module');
  private readonly path = process.getBuiltinModule('node:path');
  private readonly url = process.getBuiltinModule('node:url');

  constructor(
    /** Null: it has been deleted, and paths are not shortened. */
    private readonly workingDirectory: string | null,
    /** Positions in files with longer mappings stay those of the compiled code; 0: no file is read. */
    private readonly maxMappingBytes: number,
  ) {}

  /** The source map of a loader's output for such a file may be in Node, in the thread that loaded it; it is not on disk. */
  static isTypeScript(fileOrUrl: string): boolean {
    return /\.[cm]?tsx?(?:\?.*)?$/.test(fileOrUrl);
  }

  // Node's own `SourceMap` takes twenty times the length of the mappings, 58 MB for a bundle of Nest; this takes four times.
  /** Reads mappings (ECMA-426, 9.2) into five numbers a segment. Throws when these are no mappings. */
  static decode({ mappings, sources }: Pick<SourceMapPayload, 'mappings' | 'sources'>): Finder {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
    const digits = new Uint8Array(128);
    for (let i = 0; i < alphabet.length; i++) digits[alphabet.charCodeAt(i)] = i;
    const [comma, semicolon] = [44, 59];
    let size = 1;
    for (let i = 0; i < mappings.length; i++) if (mappings[i] === ',' || mappings[i] === ';') size += 1;
    const segments = new Int32Array(5 * size);
    /** Generated column, source, line and column: each is written as its difference to the one before. */
    const last = new Int32Array(4);
    let [count, generatedLine, field, value, shift] = [0, 0, 0, 0, 0];
    for (let i = 0; i <= mappings.length; i++) {
      const char = i < mappings.length ? mappings.charCodeAt(i) : comma;
      if (char === comma || char === semicolon) {
        if (field > 0) {
          segments.set([generatedLine, last[0]!, field < 4 ? -1 : last[1]!, last[2]!, last[3]!], 5 * count);
          count += 1;
        }
        if (char === semicolon) {
          generatedLine += 1;
          last[0] = 0;
        }
        field = value = shift = 0;
        continue;
      }
      const digit = digits[char] ?? 0;
      value |= (digit & 31) << shift;
      shift += 5;
      if ((digit & 32) !== 0) continue;
      if (field < 4) last[field]! += (value & 1) === 1 ? -(value >>> 1) : value >>> 1;
      field += 1;
      value = shift = 0;
    }
    const findEntry = (line: number, column: number): Partial<Origin> => {
      let [low, high] = [0, count];
      while (low < high) {
        const middle = (low + high) >>> 1;
        const isAfter =
          segments[5 * middle]! > line || (segments[5 * middle] === line && segments[5 * middle + 1]! > column);
        if (isAfter) high = middle;
        else low = middle + 1;
      }
      const [source = -1, originalLine = 0, originalColumn = 0] = segments.subarray(5 * low - 3, 5 * low);
      const originalSource = low === 0 ? undefined : sources[source];
      return originalSource === undefined ? {} : { originalSource, originalLine, originalColumn };
    };
    return { findEntry };
  }

  /** `file:line:column`, relative to the working directory where the file lies in it. Never throws. */
  locate({ file: fileOrUrl, line, column }: Position): string | null {
    if (fileOrUrl === null) return null;
    const file = this.toPath(fileOrUrl);
    const entry: Partial<Origin> | undefined = this.findMap(file, fileOrUrl)?.findEntry(line - 1, column - 1);
    // A source may be null in a map.
    if (typeof entry?.originalSource !== 'string') return `${this.shorten(file)}:${line}:${column}`;
    const source = this.shorten(this.resolveSource(file, entry.originalSource));
    return `${source}:${entry.originalLine! + 1}:${entry.originalColumn! + 1}`;
  }

  private shorten(file: string): string {
    const { path, workingDirectory } = this;
    if (!path.isAbsolute(file) || workingDirectory === null) return file;
    const below = path.relative(workingDirectory, file);
    const inside = below !== '' && !below.startsWith('..') && !path.isAbsolute(below);
    return (inside ? below : file).split(path.sep).join('/');
  }

  private findMap(file: string, asLoaded: string): Finder | null {
    // A dependency's sources are seldom installed, and may be named as if they lay in the application.
    if (!this.path.isAbsolute(file) || /[/\\]node_modules[/\\]/.test(file)) return null;
    const known = this.maps.get(asLoaded);
    if (known !== undefined) return known;
    let map: Finder | null = null;
    try {
      map = SourceLines.isTypeScript(file) ? (this.module.findSourceMap(asLoaded) ?? null) : this.readMap(file);
    } catch {
      // No map, a broken one, or a file that is gone: the position in the compiled code is still true.
    }
    this.maps.set(asLoaded, map);
    return map;
  }

  private readMap(file: string): Finder | null {
    const code = this.read(file);
    const comment = '//# sourceMappingURL=';
    const at = code.lastIndexOf(comment);
    if (at < 0) return null;
    const [url] = /^\S*/.exec(code.slice(at + comment.length))!;
    const inline = /^data:application\/json[^,]*;base64,/.exec(url);
    const text =
      inline === null
        ? this.read(this.path.resolve(this.path.dirname(file), decodeURIComponent(url)))
        : Buffer.from(url.slice(inline[0].length), 'base64').toString('utf8');
    const map = JSON.parse(text) as SourceMapPayload;
    if ('sections' in map) return 10 * text.length > this.maxMappingBytes ? null : new this.module.SourceMap(map);
    if (map.mappings.length > this.maxMappingBytes) return null;
    const root = map.sourceRoot ?? '';
    const sources = map.sources.map((source) => (root === '' ? source : this.path.posix.join(root, source)));
    return SourceLines.decode({ mappings: map.mappings, sources });
  }

  /** Throws for a file that is too large: with the sources' text in it, a map is about twice as large as its mappings. */
  private read(file: string): string {
    if (this.fs.statSync(file).size > 2.5 * this.maxMappingBytes) throw new RangeError('Too large');
    return this.fs.readFileSync(file, 'utf8');
  }

  /** Sources are relative to the map, which tools put beside the file. */
  private resolveSource(file: string, source: string): string {
    if (source.startsWith('file:')) return this.toPath(source);
    // `webpack://app/./src/main.ts`
    const path = source.replace(/^[a-z][\w+.-]*:\/\/[^/]*\/(?:\.\/)?/i, '');
    return path === source ? this.path.resolve(this.path.dirname(file), source) : path;
  }

  private toPath(fileOrUrl: string): string {
    if (!fileOrUrl.startsWith('file:')) return fileOrUrl;
    try {
      return this.url.fileURLToPath(fileOrUrl);
    } catch {
      return fileOrUrl;
    }
  }
}
