import type { PerfSinkHost } from './sink.js';

/** What a sink holds of each application that runs: a module class imported by two tests shares its sinks. */
export class RunningApplications<T> {
  private readonly held = new Map<PerfSinkHost, T>();

  get values(): T[] {
    return [...this.held.values()];
  }

  add(host: PerfSinkHost, value: T): void {
    this.held.set(host, value);
  }

  /** Of the application that closes; the oldest where nobody says which. */
  take(host: PerfSinkHost | undefined): T | undefined {
    const closing = host ?? [...this.held.keys()][0];
    if (closing === undefined) return undefined;
    const value = this.held.get(closing);
    this.held.delete(closing);
    return value;
  }
}
