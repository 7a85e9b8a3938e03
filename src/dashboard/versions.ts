import { displayJson } from '../core/printable.js';

/** Samples for which it is known what has gone since. */
const REMEMBERED = 200;

interface Version {
  json: string;
  /** The sample in which it became what it is. */
  sample: number;
}

/** Values by key, as JSON, and in which sample each has changed last. */
export class Versions<K> {
  private readonly versions = new Map<K, Version>();
  private readonly gone = new Map<K, number>();
  private sample = 0;

  /** Returns its bytes. */
  put(key: K, value: unknown, sample: number): number {
    this.sample = sample;
    const json = displayJson(value);
    this.gone.delete(key);
    const known = this.versions.get(key);
    if (known === undefined || known.json !== json) this.versions.set(key, { json, sample });
    return Buffer.byteLength(json);
  }

  /** The others are gone. */
  keepOnly(keys: ReadonlySet<K>, sample: number): void {
    this.sample = sample;
    for (const key of this.versions.keys()) {
      if (keys.has(key)) continue;
      this.versions.delete(key);
      this.gone.set(key, sample);
    }
    for (const [key, at] of this.gone) if (!this.remembers(at)) this.gone.delete(key);
  }

  remembers(sample: number): boolean {
    return this.sample - sample <= REMEMBERED;
  }

  entriesSince(sample: number): [K, string][] {
    const changed = [...this.versions].filter(([, version]) => version.sample > sample);
    return changed.map(([key, { json }]) => [key, json]);
  }

  goneSince(sample: number): K[] {
    return [...this.gone].filter(([, at]) => at > sample).map(([key]) => key);
  }
}
