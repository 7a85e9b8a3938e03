import { displayJson } from '../core/printable.js';

/** Samples for which it is known what has gone since. */
export const REMEMBERED = 200;

interface Version {
  /** Null: it is gone. */
  readonly json: string | null;
  /** The sample in which it became what it is. */
  readonly sample: number;
}

/** Values by key, as JSON, and in which sample each has changed last. */
export class Versions<K> {
  private readonly versions = new Map<K, Version>();

  /** Returns its bytes. */
  put(key: K, value: unknown, sample: number): number {
    const json = displayJson(value);
    if (this.versions.get(key)?.json !== json) this.versions.set(key, { json, sample });
    return Buffer.byteLength(json);
  }

  /** The others are gone. */
  keepOnly(keys: ReadonlySet<K>, sample: number): void {
    for (const [key, known] of this.versions) {
      if (keys.has(key)) continue;
      if (known.json !== null) this.versions.set(key, { json: null, sample });
      else if (sample - known.sample > REMEMBERED) this.versions.delete(key);
    }
  }

  /** What has changed after a sample; null for what has gone. */
  changedSince(sample: number): [K, string | null][] {
    const changed = [...this.versions].filter(([, version]) => version.sample > sample);
    return changed.map(([key, { json }]) => [key, json]);
  }
}
