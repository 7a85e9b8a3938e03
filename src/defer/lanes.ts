const MIN_LANES = 100;

/** Lanes that collect side by side, by key. Names made up for each call would add ever more lanes: idle ones are removed. */
export class Lanes<Lane extends { readonly isIdle: boolean }> {
  private readonly lanes = new Map<string, Lane>();
  private sweepAt = MIN_LANES;

  get(key: string, make: () => Lane): Lane {
    const known = this.lanes.get(key);
    if (known !== undefined) return known;
    if (this.lanes.size >= this.sweepAt) this.sweep();
    const lane = make();
    this.lanes.set(key, lane);
    return lane;
  }

  all(): Lane[] {
    return [...this.lanes.values()];
  }

  private sweep(): void {
    for (const [key, lane] of this.lanes) if (lane.isIdle) this.lanes.delete(key);
    this.sweepAt = Math.max(MIN_LANES, 2 * this.lanes.size);
  }
}
