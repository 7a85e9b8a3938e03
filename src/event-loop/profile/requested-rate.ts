import type { SampleRate } from '../sample.js';

/** The highest rate of those that are asked for at a time. */
export class RequestedRate implements SampleRate {
  private readonly asked = new Set<{ readonly perSecond: number }>();

  /** `setRate`: samples a second; null: the usual ones. */
  constructor(private readonly setRate: (perSecond: number | null) => void) {}

  ask(perSecond: number): () => void {
    const one = { perSecond };
    this.asked.add(one);
    this.apply();
    return () => {
      this.asked.delete(one);
      this.apply();
    };
  }

  private apply(): void {
    const rates = [...this.asked].map((one) => one.perSecond);
    this.setRate(rates.length === 0 ? null : Math.max(...rates));
  }
}
