import type { PerfSinkHost } from './sink.js';

/** The running applications of a sink: two tests that import one module class share its sinks. */
export class RunningApplications<T> {
  private readonly held = new Map<PerfSinkHost, T>();

  get values(): T[] {
    return [...this.held.values()];
  }

  add(host: PerfSinkHost, value: T): void {
    this.held.set(host, value);
  }

  /** Removes the application that closes; the oldest where none is given. */
  take(host: PerfSinkHost | undefined): T | undefined {
    const closing = host ?? [...this.held.keys()][0];
    if (closing === undefined) return undefined;
    const value = this.held.get(closing);
    this.held.delete(closing);
    return value;
  }
}
