import { optionalPeer } from '../../core/optional-peer.js';
import { PerfError } from '../../core/perf.error.js';
import { within } from '../../core/within.js';
import type { StatsigClient, StatsigEvent, StatsigUserFields } from './client.js';

/** What differs between the two SDKs. */
export interface StatsigAdapter {
  /** Once, when the application starts; tells what would make events disappear. */
  start(warn: (message: string) => void): Promise<void>;
  /** Resolves when events may be logged; rejects when they never may. */
  ready(): Promise<void>;
  /** Queues an event in the SDK. Throws before its initialisation and after its shutdown. */
  log(event: StatsigEvent): void;
  /** Sends what the SDK has queued. Rejects when that is known to have failed. */
  flush(timeoutMs: number): Promise<void>;
}

/** The adapter for a client of either SDK. */
export const adapterFor = (client: StatsigClient): StatsigAdapter =>
  typeof client.flushEvents === 'function' ? new CoreAdapter(client) : new LegacyAdapter(client);

/** `statsig-node` 6. */
class LegacyAdapter implements StatsigAdapter {
  constructor(private readonly client: StatsigClient) {}

  async start(): Promise<void> {}

  /**
   * `forRoot()` stands in a decorator, where nobody can await: so the client may be given while it still initialises.
   * `initializeAsync()` gives back the running initialisation, or resolves at once when it is done.
   */
  async ready(): Promise<void> {
    await this.client.initializeAsync?.();
  }

  log({ name, user, value, metadata }: StatsigEvent): void {
    this.client.logEvent(user as never, name, value, metadata);
  }

  /**
   * Always with a timeout: that is one post. Without, the SDK posts a failing batch 2^(n+1)-1 times for a retry limit of
   * n (63 at its default of 5) with pauses up to hours, and holds the batch as long. It resolves whether or not the post
   * arrived; only the time it took tells that the timeout cut it off.
   */
  async flush(timeoutMs: number): Promise<void> {
    const startedMs = performance.now();
    await this.client.flush?.(timeoutMs);
    if (performance.now() - startedMs >= timeoutMs) throw new Error(`no answer within ${Math.round(timeoutMs)} ms`);
  }
}

type StatsigUserClass = new (fields: StatsigUserFields) => object;

/** `@statsig/statsig-node-core`: a Rust core that keeps failed batches itself, within a bound. */
class CoreAdapter implements StatsigAdapter {
  private User: StatsigUserClass | null = null;
  /** Most events are of the pod, and a user made per call costs more than the call. */
  private lastFields: StatsigUserFields | null = null;
  private lastUser: object | null = null;

  constructor(private readonly client: StatsigClient) {}

  /**
   * The SDK takes users of its own class only: of a plain object it prints an error and drops the event. A client that
   * has come without the package is somebody's stand-in, which gets plain objects.
   */
  async start(warn: (message: string) => void): Promise<void> {
    const name = '@statsig/statsig-node-core';
    try {
      const core = await optionalPeer(name, 'statsigSink()', () => import('@statsig/statsig-node-core'));
      this.User = core.StatsigUser;
    } catch (error) {
      if (!(error instanceof PerfError)) throw error;
      warn(error.message);
    }
  }

  async ready(): Promise<void> {}

  log({ name, user, value, metadata }: StatsigEvent): void {
    this.client.logEvent(this.userOf(user) as never, name, value, metadata);
  }

  async flush(timeoutMs: number): Promise<void> {
    let sent = true;
    const answered = await within(timeoutMs, async () => {
      sent = (await this.client.flushEvents?.())?.isSuccess !== false;
    });
    if (!answered) throw new Error(`no answer within ${Math.round(timeoutMs)} ms`);
    if (!sent) throw new Error('the post failed; the SDK keeps what it can and tries again');
  }

  private userOf(fields: StatsigUserFields): object {
    if (this.User === null) return fields;
    const same = fields.customIDs === undefined && fields.userID === this.lastFields?.userID;
    if (same && this.lastUser !== null) return this.lastUser;
    const user = new this.User(fields);
    if (fields.customIDs === undefined) [this.lastFields, this.lastUser] = [fields, user];
    return user;
  }
}
