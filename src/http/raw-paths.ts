import { PerfError } from '../core/perf.error.js';

/** Who has which raw path of an application: of two with the same one Express asks only the first, without a word. */
export class RawPaths {
  private readonly taken = new Map<string, { readonly path: string; readonly owner: string }>();

  /** `asOne` maps a path to a key: paths that the framework takes for one have one key. */
  constructor(private readonly asOne: (path: string) => string = String) {}

  ownerOf(path: string): string | null {
    return this.taken.get(this.asOne(path))?.owner ?? null;
  }

  /** @throws PERF_ERR_OPTION */
  take(path: string, owner: string): void {
    const key = this.asOne(path);
    const other = this.taken.get(key);
    this.taken.set(key, other ?? { path, owner });
    // One that asks for both forms of a path wants both, where a framework tells them apart.
    if (other === undefined || (other.owner === owner && other.path !== path)) return;
    const as = other.path === path ? '' : ` as ${other.path}`;
    const message = `GET ${path} is asked for twice, by ${other.owner}${as} and by ${owner}, and only one can answer. Give one of them another path.`;
    throw new PerfError('PERF_ERR_OPTION', message);
  }
}
