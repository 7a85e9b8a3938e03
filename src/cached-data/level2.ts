/** What the second level says of one key. */
export interface Level2Answer {
  /** The time of its own clock, milliseconds: what begins to load now is newer than what was invalidated before. */
  readonly atMs: number;
  /** As it was written, and how old it is; null: there is none. */
  readonly value: { readonly text: string; readonly ageMs: number } | null;
}

/** What a write says beside the text. */
export interface Level2Write {
  /** When its load began, by {@link Level2Answer.atMs}. Nothing is written over what is newer, or was invalidated since. */
  readonly loadedAtMs: number;
  readonly keepMs: number;
}

/** Values that all pods share, as texts, of methods like `'Catalogue.product'`. Nothing here throws or rejects, and nothing waits long. */
export interface Level2 {
  /** Null where it cannot tell soon: then nothing may be written for this load. */
  read(method: string, key: string): Promise<Level2Answer | null>;
  write(method: string, key: string, text: string, write: Level2Write): void;
  /** For all pods; `key` null: everything of the method. */
  invalidate(method: string, key: string | null, keepMs: number): void;
  close(): Promise<void>;
}

/** Who hears what other pods have done. */
export interface Level2Listener {
  invalidated(method: string, key: string | null): void;
  /** Invalidations may have been missed. */
  missed(): void;
  /** Something went wrong: said once a cause. */
  report(cause: string, message: string): void;
}

/** Makes the second level of an application, when it boots: `redisCache()` of `nestjs-perf/redis` is one. */
export interface CacheLevel2 {
  readonly name: string;
  open(listener: never): Promise<object>;
}

/** The same, as it is made here. */
export interface Level2Maker extends CacheLevel2 {
  open(listener: Level2Listener): Promise<Level2>;
}
