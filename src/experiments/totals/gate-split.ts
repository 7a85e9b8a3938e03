/** Requests in the moving average of the share. */
const LOOKS_BACK = 64;
/** Weights are binary fractions: their sums do not depend on the order. */
const FRACTIONS = 1_024;
/** Units of the first window; each next one is twice as long. A test comes after each 100 units, as a change must not wait for a window's end. */
const FIRST_WINDOW = 100;
/** Standard errors between two windows that chance does not explain: 7 in a million. */
const SURE = 4.5;

/** New units, and how many of them are `on`. */
interface Units {
  readonly on: number;
  readonly units: number;
}

const NO_UNITS: Units = { on: 0, units: 0 };
const addUnits = (a: Units, b: Units): Units => ({ on: a.on + b.on, units: a.units + b.units });
const computeShare = ({ on, units }: Units): number => on / units;

/**
 * The share of `on` around a request, and whether it moved. A request's weight is the share of the other variant, so that a period
 * counts as much for `on` as for `off` (overlap weights; Li, Morgan & Zaslavsky 2018).
 */
export class GateSplit {
  private share = 0.5;
  private requests = 0;
  private known: number | null = null;
  private movedFrom: number | null = null;
  private before = NO_UNITS;
  private window = NO_UNITS;
  /** Units since the last test; they are not in the window yet. */
  private latest = NO_UNITS;
  private size = FIRST_WINDOW;

  /** The share before and after the last change; null while there was none. */
  get moved(): readonly [from: number, to: number] | null {
    if (this.movedFrom === null) return null;
    return [this.movedFrom, this.known ?? computeShare(addUnits(this.before, this.window))];
  }

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
      if (this.known !== null && this.known !== known) this.movedFrom = this.known;
      this.known = known;
    } else if (isNewUnit) this.addUnit(isOn);
  }

  /** First requests of units are independent of each other; all requests are not. */
  private addUnit(isOn: boolean): void {
    this.latest = addUnits(this.latest, { on: Number(isOn), units: 1 });
    if (this.latest.units < FIRST_WINDOW) return;
    const { before, latest } = this;
    const window = addUnits(this.window, latest);
    this.latest = NO_UNITS;
    if (differ(before, window)) {
      this.movedFrom = computeShare(before);
      // The window may have begun before the change, the latest units hardly have.
      this.before = latest;
      this.window = NO_UNITS;
      this.size = FIRST_WINDOW;
    } else if (window.units < this.size) {
      this.window = window;
    } else {
      this.before = addUnits(before, window);
      this.window = NO_UNITS;
      this.size *= 2;
    }
  }
}

/** Whether two shares differ by more than chance explains. */
function differ(a: Units, b: Units): boolean {
  if (a.units === 0) return false;
  const both = computeShare(addUnits(a, b));
  const error = Math.sqrt(both * (1 - both) * (1 / a.units + 1 / b.units));
  return Math.abs(computeShare(a) - computeShare(b)) > SURE * error;
}
