import type { UserUse } from '../core/snapshot.js';
import { SpaceSaving } from './space-saving.js';

/** One hour, in parts that are forgotten one by one. */
const PART_MS = 300_000;
const PARTS = 12;

export interface UserRequest {
  readonly unit: string;
  /** `'GET /users/:id'` */
  readonly route: string;
  readonly durationMs: number;
  readonly upstreamMs: number;
}

interface Part {
  readonly fromMs: number;
  readonly byTime: SpaceSaving;
  readonly byCount: SpaceSaving;
}

/** Neither a user's id nor a route contains a line break. */
const SEPARATOR = '\n';

/** The heaviest pairs of a user and a route in the last hour, by time and by count, in bounded memory. */
export class HeavyUsers {
  private readonly parts: Part[] = [];

  constructor(
    private readonly top: number,
    private readonly nowMs: () => number,
  ) {}

  add({ unit, route, durationMs, upstreamMs }: UserRequest): void {
    const { byTime, byCount } = this.part();
    const key = `${unit}${SEPARATOR}${route}`;
    byTime.add(key, durationMs, upstreamMs);
    byCount.add(key, 1);
  }

  /** The heaviest first; of the parts that have begun in the last `lastMs`. */
  list(by: 'totalMs' | 'count', route?: string, lastMs = Infinity): UserUse[] {
    this.forget();
    const nowMs = this.nowMs();
    const parts = this.parts.filter(({ fromMs }) => nowMs - fromMs <= lastMs);
    const keys = new Set(parts.flatMap(({ byTime, byCount }) => [...byTime.keys, ...byCount.keys]));
    const rows: UserUse[] = [];
    for (const key of keys) {
      const at = key.lastIndexOf(SEPARATOR);
      const of = key.slice(at + 1);
      if (route !== undefined && of !== route) continue;
      const none = { count: 0, countAtLeast: 0, totalMs: 0, totalMsAtLeast: 0, upstreamMs: 0 };
      const row = { unit: key.slice(0, at), route: of, ...none };
      for (const part of parts) {
        const time = part.byTime.of(key);
        const count = part.byCount.of(key);
        row.count += count.atMost;
        row.countAtLeast += count.atLeast;
        row.totalMs += time.atMost;
        row.totalMsAtLeast += time.atLeast;
        row.upstreamMs += time.upstreamMs;
      }
      rows.push(row);
    }
    return rows.toSorted((a, b) => b[by] - a[by]).slice(0, this.top);
  }

  private part(): Part {
    const nowMs = this.nowMs();
    const newest = this.parts.at(-1);
    if (newest !== undefined && nowMs - newest.fromMs < PART_MS) return newest;
    const part = { fromMs: nowMs, byTime: new SpaceSaving(this.top), byCount: new SpaceSaving(this.top) };
    this.parts.push(part);
    this.forget();
    return part;
  }

  private forget(): void {
    const nowMs = this.nowMs();
    while (this.parts.length > 0 && nowMs - this.parts[0]!.fromMs > PARTS * PART_MS) this.parts.shift();
  }
}
