/** The second level's answer for one key. */
export interface Level2Answer {
  /** The time of its own clock, milliseconds: a load that begins now is newer than every earlier invalidation. */
  readonly atMs: number;
  /** The text as written, and its age; null: there is none. */
  readonly value: { readonly text: string; readonly ageMs: number } | null;
}

/** Times of a write. */
export interface Level2Write {
  /** Start of its load, by {@link Level2Answer.atMs}. A value that is newer, or was invalidated since, is never overwritten. */
  readonly loadedAtMs: number;
  readonly keepMs: number;
}

/** Values that all pods share, as texts, of methods like `'Catalogue.product'`. Nothing here throws or rejects, and nothing waits long. */
export interface Level2 {
  /** Returns null without an answer in time: then nothing may be written for this load. */
  read(method: string, key: string): Promise<Level2Answer | null>;
  write(method: string, key: string, text: string, write: Level2Write): void;
  /** Invalidates for all pods; `key` null: everything of the method. */
  invalidate(method: string, key: string | null, keepMs: number): void;
  close(): Promise<void>;
}

/** Receiver of other pods' invalidations. */
export interface Level2Listener {
  invalidated(method: string, key: string | null): void;
  /** Invalidations may have been missed. */
  missed(): void;
  /** Logs a failure once for each cause. */
  report(cause: string, message: string): void;
}

/** Makes the second level of an application, when it boots: `redisCache()` of `nestjs-perf/redis` is one. */
export interface CacheLevel2 {
  readonly name: string;
  open(listener: never): Promise<object>;
}

/** `CacheLevel2` with the types that this library uses. */
export interface Level2Maker extends CacheLevel2 {
  open(listener: Level2Listener): Promise<Level2>;
}
