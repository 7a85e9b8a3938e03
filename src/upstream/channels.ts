import type { AsyncLocalStorage } from 'node:async_hooks';
import { channel, subscribe, unsubscribe, type Channel } from 'node:diagnostics_channel';
import { describeReason } from '../core/reason.js';
import type { OncePerCause } from '../core/reporter.js';

type Subscriber = (message: unknown) => void;

/**
 * Every channel, kept for good. Node 20 forgets a channel by its name when an older one of that name is collected as garbage: a
 * client that is loaded later would publish on another channel (the weak map of lib/diagnostics_channel.js).
 */
const known = new Map<string, Channel>();

function findChannel(name: string): Channel {
  const found = known.get(name) ?? channel(name);
  known.set(name, found);
  return found;
}

/** The subscriptions of one application to Node's `diagnostics_channel`, until it closes. */
export class Channels {
  private readonly ends: (() => void)[] = [];

  constructor(private readonly report: OncePerCause) {}

  /** `subscriber` may throw: Node would end the process, so the error is caught and reported here. */
  on(name: string, subscriber: (message: never) => void): void {
    const guarded: Subscriber = (message) => {
      try {
        subscriber(message as never);
      } catch (error) {
        const cause = `a call on "${name}" could not be read: ${describeReason(error)}`;
        this.report.report(cause, `${cause}. The call itself is not affected.`);
      }
    };
    findChannel(name);
    subscribe(name, guarded);
    this.ends.push(() => void unsubscribe(name, guarded));
  }

  /** Runs the code that a message is published around with the store that `read` returns. */
  bind<T>(name: string, store: AsyncLocalStorage<T>, read: (message: object) => T | undefined): void {
    const bound = findChannel(name);
    bound.bindStore(store, read as (message: unknown) => T);
    this.ends.push(() => void bound.unbindStore(store));
  }

  close(): void {
    for (const end of this.ends.splice(0)) end();
  }
}
