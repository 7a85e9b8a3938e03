import type { SourceMap, SourceMapPayload, SourceMapping } from 'node:module';

export interface Position {
  readonly file: string | null;
  readonly line: number;
  readonly column: number;
}
/** Formats a position as `file:line:column`; null where it has no place. */
export type Locate = (position: Position) => string | null;

/** Finds positions in the user's sources. The sampler's thread runs this class's text (see sampler-source.ts): it uses nothing from outside. */
export class SourceLines {
  private readonly maps = new Map<string, SourceMap | null>();
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

  /** Whether a loader has transpiled the file: its source map is in the memory of the thread that loaded it, not on disk. */
  static isTypeScript(fileOrUrl: string): boolean {
    return /\.[cm]?tsx?(?:\?.*)?$/.test(fileOrUrl);
  }

  /** `file:line:column`, relative to the working directory where the file lies in it. Never throws. */
  locate({ file: fileOrUrl, line, column }: Position): string | null {
    if (fileOrUrl === null) return null;
    const file = this.toPath(fileOrUrl);
    const entry: Partial<SourceMapping> | undefined = this.findMap(file, fileOrUrl)?.findEntry(line - 1, column - 1);
    // A source map may have null for a source.
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

  private findMap(file: string, asLoaded: string): SourceMap | null {
    // A dependency's sources are seldom installed, and may be named as if they lay in the application.
    if (!this.path.isAbsolute(file) || /[/\\]node_modules[/\\]/.test(file)) return null;
    const known = this.maps.get(asLoaded);
    if (known !== undefined) return known;
    let map: SourceMap | null = null;
    try {
      map = SourceLines.isTypeScript(file) ? (this.module.findSourceMap(asLoaded) ?? null) : this.readMap(file);
    } catch {
      // No map, a broken one, or a file that is gone: the position in the compiled code is still true.
    }
    this.maps.set(asLoaded, map);
    return map;
  }

  private readMap(file: string): SourceMap | null {
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
    // Node's `SourceMap` takes twenty times the length of the mappings.
    if (map.mappings.length > this.maxMappingBytes) return null;
    const root = map.sourceRoot ?? '';
    const sources = map.sources.map((source) => (root === '' ? source : this.path.posix.join(root, source)));
    return new this.module.SourceMap({ ...map, sources, sourcesContent: [] });
  }

  /** Throws for a file that is too large: a map may have the sources' text in it. */
  private read(file: string): string {
    if (this.fs.statSync(file).size > 4 * this.maxMappingBytes) throw new RangeError('Too large');
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
