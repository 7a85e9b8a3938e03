import { PerfError } from '../core/perf.error.js';

/** Who has which raw path of an application: of two with the same one Express asks only the first, without a word. */
export class RawPaths {
  private readonly owners = new Map<string, string>();

  /** @throws PERF_ERR_OPTION */
  take(path: string, owner: string): void {
    const other = this.owners.get(path);
    if (other !== undefined) {
      const message = `GET ${path} is asked for twice, by ${other} and by ${owner}, and only one can answer. Give one of them another path.`;
      throw new PerfError('PERF_ERR_OPTION', message);
    }
    this.owners.set(path, owner);
  }
}
