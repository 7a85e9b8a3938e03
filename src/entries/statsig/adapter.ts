import { PerfError } from '../../core/perf.error.js';
import { coreUserClass, type StatsigClient, type StatsigEvent, type StatsigUserClass } from './client.js';
import type { StatsigUserFields } from './client.js';

export interface StatsigAdapter {
  /** Called once at the application's start; warns of what would make events disappear. */
  start(warn: (message: string) => void): Promise<void>;
  /** Resolves when events may be logged; rejects when they never may. */
  ready(): Promise<void>;
  /** Hands one event to the SDK; throws what the SDK throws. */
  log(event: StatsigEvent): void;
  /** Makes the SDK post its events. Rejects with the error of the SDK. */
  flush(timeoutMs: number): Promise<void>;
}

export const adapterFor = (client: StatsigClient): StatsigAdapter =>
  typeof client.flushEvents === 'function' ? new CoreAdapter(client) : new LegacyAdapter(client);

/** `statsig-node` 6. It does not report a post that fails, and drops the batch. */
class LegacyAdapter implements StatsigAdapter {
  private initialized: Promise<unknown> | null = null;

  constructor(private readonly client: StatsigClient) {}

  /** Gates are evaluated before the first events are due. `ready()` rejects with the reason of a failure. */
  async start(): Promise<void> {
    // Once: a second call would revive a client that was shut down. One that still initialises gives back that promise.
    this.initialized ??= Promise.resolve(this.client.initializeAsync?.());
    this.initialized.catch(() => {});
  }

  async ready(): Promise<void> {
    await this.initialized;
  }

  log({ name, user, value, metadata, at }: StatsigEvent): void {
    const { client } = this;
    // Only this call takes a time. Its type is a string, but the SDK takes only a number.
    if (client.logEventObject === undefined) client.logEvent(user as never, name, value, metadata);
    else client.logEventObject({ eventName: name, user, value, metadata, time: at } as never);
  }

  /** With a timeout the SDK posts once; without, it posts a failing batch up to 63 times, with pauses up to hours. */
  async flush(timeoutMs: number): Promise<void> {
    await this.client.flush?.(timeoutMs);
  }
}

/** `@statsig/statsig-node-core`: a Rust core that posts most failed batches again, within a bound, and drops refused ones. */
class CoreAdapter implements StatsigAdapter {
  private User: StatsigUserClass | null = null;
  /** Most events are of the pod, and a user made per call costs more than the call. */
  private last: { userID: string; user: object } | null = null;

  constructor(private readonly client: StatsigClient) {}

  /** A client without the installed package is a test double, which gets plain objects. */
  async start(warn: (message: string) => void): Promise<void> {
    try {
      this.User = await coreUserClass('statsigSink()');
    } catch (error) {
      if (!(error instanceof PerfError)) throw error;
      warn(error.message);
    }
  }

  async ready(): Promise<void> {}

  /** Takes no time: an event is of when it is logged, which is at most some seconds later. */
  log({ name, user, value, metadata }: StatsigEvent): void {
    this.client.logEvent(this.makeUser(user) as never, name, value, metadata);
  }

  /** 0.23 returns success whatever becomes of the post. */
  async flush(): Promise<void> {
    const result = await this.client.flushEvents?.();
    if (result?.isSuccess === false) throw new Error('the SDK says that the post failed');
  }

  private makeUser(fields: StatsigUserFields): object {
    if (this.User === null) return fields;
    if (fields.customIDs !== undefined) return new this.User(fields);
    if (this.last?.userID !== fields.userID) this.last = { userID: fields.userID, user: new this.User(fields) };
    return this.last.user;
  }
}
