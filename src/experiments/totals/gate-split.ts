/** Requests in the moving average of the share. */
const LOOKS_BACK = 64;
/** Weights are binary fractions: their sums do not depend on the order. */
const FRACTIONS = 1_024;
/** Units of the first window; each next one is twice as long. */
const FIRST_WINDOW = 100;
/** Standard errors between two windows that chance does not explain: 7 in a million. */
const SURE = 4.5;

/**
 * The share of `on` around a request, and whether it moved. A request's weight is the share of the other variant, so that a period
 * counts as much for `on` as for `off` (overlap weights; Li, Morgan & Zaslavsky 2018).
 */
export class GateSplit {
  /** The share before and after the last change; null while there was none. */
  moved: readonly [from: number, to: number] | null = null;
  private share = 0.5;
  private requests = 0;
  private known: number | null = null;
  private readonly before = { on: 0, units: 0 };
  private readonly window = { on: 0, units: 0 };
  private size = FIRST_WINDOW;

  /** Before the request is added: its own variant must not weigh on it. */
  weigh(isOn: boolean, known: number | null): number {
    const share = Math.round((known ?? this.share) * FRACTIONS) / FRACTIONS;
    return isOn ? 1 - share : share;
  }

  /** `known` is the gate client's share; null: the share is estimated. */
  add(isOn: boolean, isNewUnit: boolean, known: number | null): void {
    this.requests += 1;
    this.share += (Number(isOn) - this.share) / Math.min(LOOKS_BACK, this.requests + 2);
    if (known !== null) {
      if (this.known !== null && this.known !== known) this.moved = [this.known, known];
      this.known = known;
    } else if (isNewUnit) this.addUnit(isOn);
  }

  /** First requests of units are independent of each other; all requests are not. */
  private addUnit(isOn: boolean): void {
    const { before, window } = this;
    window.units += 1;
    window.on += Number(isOn);
    if (window.units < this.size) return;
    const all = { on: before.on + window.on, units: before.units + window.units };
    if (before.units > 0) {
      const [from, to, both] = [before.on / before.units, window.on / window.units, all.on / all.units];
      const error = Math.sqrt(both * (1 - both) * (1 / before.units + 1 / window.units));
      if (Math.abs(to - from) > SURE * error) {
        this.moved = [from, to];
        Object.assign(before, window);
        this.size = FIRST_WINDOW;
        Object.assign(window, { on: 0, units: 0 });
        return;
      }
    }
    Object.assign(before, all);
    Object.assign(window, { on: 0, units: 0 });
    this.size *= 2;
  }
}
