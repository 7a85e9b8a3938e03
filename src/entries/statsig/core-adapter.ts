import { optionalPeer } from '../../core/optional-peer.js';
import { PerfError } from '../../core/perf.error.js';
import type { StatsigAdapter } from './adapter.js';
import type { StatsigClient, StatsigEvent, StatsigUserFields } from './client.js';
import { abortable, lost, type Undelivered } from './undelivered.js';

type StatsigUserClass = new (fields: StatsigUserFields) => object;

/** `@statsig/statsig-node-core`: a Rust core that keeps failed batches itself, within a bound. */
export class CoreAdapter implements StatsigAdapter {
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

  async post(events: readonly StatsigEvent[], signal: AbortSignal): Promise<readonly Undelivered[]> {
    const undelivered: Undelivered[] = [];
    let logged = 0;
    try {
      for (const event of events) {
        this.log(event);
        logged += 1;
      }
    } catch (error) {
      undelivered.push(lost(events.length - logged, error));
    }
    try {
      const result = await abortable(signal, Promise.resolve(this.client.flushEvents?.()));
      if (result?.isSuccess === false) throw new Error('the post failed; the SDK keeps what it can and tries again');
    } catch (error) {
      undelivered.push(lost(logged, error));
    }
    return undelivered;
  }

  /** Takes no time: an event is of when it is logged, which is at most some seconds later. */
  private log({ name, user, value, metadata }: StatsigEvent): void {
    this.client.logEvent(this.userOf(user) as never, name, value, metadata);
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
