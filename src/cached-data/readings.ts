import { AsyncLocalStorage } from 'node:async_hooks';

/** How old a value is, and until when it is fresh; monotonic milliseconds. */
export interface Times {
  readonly loadedAtMs: number;
  readonly freshUntilMs: number;
}

/** Hears what a load reads from other cached methods. */
export interface Reader {
  reads(times: Times): void;
}

/** The times of a load's value: it is as old as the load's start, or as the oldest value that it was made of. */
export class LoadTimes implements Times, Reader {
  loadedAtMs: number;
  freshUntilMs: number;

  constructor(
    readonly startedMs: number,
    private readonly ttlMs: number,
    private readonly staleMs: number,
  ) {
    this.loadedAtMs = startedMs;
    this.freshUntilMs = startedMs + ttlMs;
  }

  get staleUntilMs(): number {
    return this.freshUntilMs + this.staleMs;
  }

  /** The bounds of the two do not add up: it is fresh for as long as the longer of them allows. */
  reads({ loadedAtMs, freshUntilMs }: Times): void {
    this.loadedAtMs = Math.min(this.loadedAtMs, loadedAtMs);
    this.freshUntilMs = Math.min(this.freshUntilMs, Math.max(loadedAtMs + this.ttlMs, freshUntilMs));
  }
}

/** The load that runs, by an async context of its own. */
export class Readings {
  private readonly store = new AsyncLocalStorage<Reader>();

  /** The load that calls. */
  reader(): Reader | null {
    return this.store.getStore() ?? null;
  }

  run<T>(reader: Reader, work: () => T): T {
    return this.store.run(reader, work);
  }
}
