import { WINDOW_MS } from '../rows/tiers.js';
import type { JudgedWindow } from './judged-window.js';

/** A change so soon after a release is the release's. */
const AFTER_RELEASE_MS = 30 * 60_000;

/** Which releases have come, and come again. */
export class ReleaseTrack {
  /** The last time that each has served without a break. */
  private readonly served = new Map<string, { readonly at: number; until: number }>();

  /** `before`: the window before. */
  take({ at, releases }: JudgedWindow, before: JudgedWindow | undefined): void {
    for (const release of releases) {
      if (!before?.releases.has(release)) this.served.set(release, { at, until: 0 });
      this.served.get(release)!.until = at + WINDOW_MS;
    }
  }

  /** The release that came shortly before a change and serves in it, where another was there before it. */
  cameBefore(since: number): { name: string; at: number } | null {
    if (this.served.size < 2) return null;
    const [newest] = [...this.served]
      .filter(([, { at, until }]) => since - at <= AFTER_RELEASE_MS && at - since <= WINDOW_MS && since < until)
      .toSorted(([, a], [, b]) => b.at - a.at);
    return newest === undefined ? null : { name: newest[0], at: newest[1].at };
  }
}
