import { channel, subscribe, unsubscribe, type Channel } from 'node:diagnostics_channel';
import { reasonOf } from '../core/reason.js';
import type { OncePerCause } from '../core/reporter.js';

/** Hears of what a channel publishes. */
type Hear = (message: unknown) => void;

/**
 * Kept for good: Node 20 may give a client that is loaded later another channel of the same name, which nobody hears, once
 * one that was listened to has been collected as garbage (the weak map of lib/diagnostics_channel.js deletes by name).
 */
const known = new Map<string, Channel>();

/** The channels of Node's `diagnostics_channel` that one application listens to, until it closes. */
export class Channels {
  private readonly heard: [name: string, hear: Hear][] = [];

  constructor(private readonly report: OncePerCause) {}

  /** `hear` may throw: Node would end the process, so it is caught and reported here. */
  on(name: string, hear: (message: never) => void): void {
    const guarded: Hear = (message) => {
      try {
        hear(message as never);
      } catch (error) {
        const cause = `a call on "${name}" could not be read: ${reasonOf(error)}`;
        this.report.report(cause, `${cause}. The call itself is not affected.`);
      }
    };
    known.set(name, channel(name));
    subscribe(name, guarded);
    this.heard.push([name, guarded]);
  }

  close(): void {
    for (const [name, hear] of this.heard.splice(0)) unsubscribe(name, hear);
  }
}
