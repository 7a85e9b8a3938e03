import { ServedTimes } from '../compare/served.js';
import { WINDOW_MS } from '../rows/tiers.js';
import type { JudgedWindow } from './judged-window.js';

/** A change so soon after a release is the release's. */
const AFTER_RELEASE_MS = 30 * 60_000;

/** Which releases have come, and come again. */
export class ReleaseTrack {
  private readonly served = new ServedTimes();

  take({ at, releases }: JudgedWindow): void {
    this.served.take(at, WINDOW_MS, releases);
  }

  /** The release that came shortly before a change and serves in it, where another was there before it. */
  cameBefore(since: number): { name: string; at: number } | null {
    const last = [...this.served.byRelease].map(([name, times]) => ({
      name,
      at: times.at(-1)!.from,
      to: times.at(-1)!.to,
    }));
    const [newest] = last
      .filter(({ at, to }) => since - at <= AFTER_RELEASE_MS && at - since <= WINDOW_MS && since < to)
      .toSorted((a, b) => b.at - a.at);
    return newest === undefined || last.length < 2 ? null : newest;
  }
}
