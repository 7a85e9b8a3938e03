import type { StatsigClient, StatsigEvent } from './client.js';
import { CoreAdapter } from './core-adapter.js';
import { LegacyAdapter } from './legacy-adapter.js';
import type { Undelivered } from './undelivered.js';

/** What differs between the two SDKs. */
export interface StatsigAdapter {
  /** Once, when the application starts; tells what would make events disappear. */
  start(warn: (message: string) => void): Promise<void>;
  /** Resolves when events may be logged; rejects when they never may. */
  ready(): Promise<void>;
  /**
   * Logs the events and posts them in the same turn of the event loop, so that the SDK's own timer never finds them.
   * Resolves to what has not arrived, at the latest soon after `signal` aborts. Never rejects.
   */
  post(events: readonly StatsigEvent[], signal: AbortSignal): Promise<readonly Undelivered[]>;
}

/** The adapter for a client of either SDK. */
export const adapterFor = (client: StatsigClient): StatsigAdapter =>
  typeof client.flushEvents === 'function' ? new CoreAdapter(client) : new LegacyAdapter(client);
