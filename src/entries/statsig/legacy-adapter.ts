import type { StatsigAdapter } from './adapter.js';
import type { StatsigClient, StatsigEvent } from './client.js';
import { fetcherOf, isMuted, postsDuring } from './legacy-posts.js';
import { abortable, lost, type Undelivered } from './undelivered.js';

/**
 * What the SDK is told to wait for a post. With a timeout it posts once; without, it posts a failing batch 2^(n+1)-1 times
 * for a retry limit of n (63 at its default of 5) with pauses up to hours, and holds the batch as long.
 */
const SDK_TIMEOUT_MS = 60_000;
/** The same where a post cannot be aborted: the SDK's timer keeps the process alive. */
const BLIND_TIMEOUT_MS = 5_000;

const UNKNOWN_SDK =
  'this client does not show what becomes of its posts, as `statsig-node` 6 does, so events that Statsig refuses are lost uncounted';

const countWithout = (events: readonly StatsigEvent[], undelivered: readonly Undelivered[]): number =>
  undelivered.reduce((count, one) => count - one.events, events.length);

/** `statsig-node` 6. */
export class LegacyAdapter implements StatsigAdapter {
  constructor(private readonly client: StatsigClient) {}

  async start(warn: (message: string) => void): Promise<void> {
    if (this.isUnknown()) warn(UNKNOWN_SDK);
  }

  /**
   * `forRoot()` stands in a decorator, where nobody can await: so the client may be given while it still initialises.
   * `initializeAsync()` gives back the running initialisation, or resolves at once when it is done.
   */
  async ready(): Promise<void> {
    await this.client.initializeAsync?.();
  }

  async post(events: readonly StatsigEvent[], signal: AbortSignal): Promise<readonly Undelivered[]> {
    try {
      const fetcher = fetcherOf(this.client);
      if (fetcher === null) return await this.postBlindly(events, signal);
      const undelivered: Undelivered[] = [];
      let flushed = Promise.resolve<unknown>(undefined);
      const posts = postsDuring(fetcher, signal, () => {
        undelivered.push(...this.logAll(events));
        flushed = Promise.resolve(this.client.flush?.(SDK_TIMEOUT_MS));
      });
      if (posts.length === 0) {
        await abortable(signal, flushed);
        const logged = countWithout(events, undelivered);
        if (logged > 0 && !isMuted(this.client)) undelivered.push(lost(logged, UNKNOWN_SDK));
        return undelivered;
      }
      // Its outcome is that of the posts, which are settled below.
      flushed.catch(() => {});
      for (const outcome of await Promise.all(posts)) if (outcome !== null) undelivered.push(outcome);
      return undelivered;
    } catch (error) {
      return [lost(events.length, error)];
    }
  }

  /** With insides that are not known: it resolves whether or not the post arrived, and only the time it took tells of a timeout. */
  private async postBlindly(events: readonly StatsigEvent[], signal: AbortSignal): Promise<readonly Undelivered[]> {
    const undelivered = this.logAll(events);
    const logged = countWithout(events, undelivered);
    const startedMs = performance.now();
    try {
      await abortable(signal, Promise.resolve(this.client.flush?.(BLIND_TIMEOUT_MS)));
      if (performance.now() - startedMs >= BLIND_TIMEOUT_MS) throw new Error(`no answer within ${BLIND_TIMEOUT_MS} ms`);
    } catch (error) {
      if (logged > 0) undelivered.push(lost(logged, error));
    }
    return undelivered;
  }

  /** Throws nothing; the SDK does, before its initialisation and after its shutdown. */
  private logAll(events: readonly StatsigEvent[]): Undelivered[] {
    let logged = 0;
    try {
      for (const event of events) {
        this.log(event);
        logged += 1;
      }
      return [];
    } catch (error) {
      return [lost(events.length - logged, error)];
    }
  }

  private isUnknown(): boolean {
    try {
      return fetcherOf(this.client) === null;
    } catch {
      // The `Statsig` object before `Statsig.initialize()`: it is looked at again for each post.
      return false;
    }
  }

  private log({ name, user, value, metadata, at }: StatsigEvent): void {
    const { client } = this;
    // Only this call takes a time. Its type says string, but the SDK uses nothing but a number.
    if (client.logEventObject === undefined) client.logEvent(user as never, name, value, metadata);
    else client.logEventObject({ eventName: name, user, value, metadata, time: at } as never);
  }
}
