import { getOrAdd } from '../../core/get-or-add.js';
import type { BlockRecord } from '../../core/record.js';
import type { SeriesCap } from './series-cap.js';

export interface BlockTotal {
  route: string;
  cause: string;
  count: number;
  seconds: number;
}

/** Event-loop blocks since the start by the route that is proven to have caused them (`''`: none is) and by cause. */
export class BlockTotals {
  private readonly totals = new Map<string, BlockTotal>();

  constructor(private readonly cap: SeriesCap) {}

  add(block: BlockRecord): void {
    const route = this.cap.admit(block.request?.route ?? '');
    const key = `${block.cause} ${route}`;
    const total = getOrAdd(this.totals, key, () => ({ route, cause: block.cause, count: 0, seconds: 0 }));
    total.count += 1;
    total.seconds += block.durationMs / 1_000;
  }

  all(): Iterable<BlockTotal> {
    return this.totals.values();
  }
}
