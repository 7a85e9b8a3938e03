/** Every further route, handler or target once the cap is reached. */
export const OVERFLOW = 'other';

/** Bounds the number of series: what was let in stays in and the rest shares one, so no counter ever goes back. */
export class SeriesCap {
  private readonly admitted = new Set<string>();

  constructor(private readonly max = 1_000) {}

  /** The route, the handler or the upstream's target, to use as a label. */
  admit(subject: string): string {
    if (this.admitted.has(subject)) return subject;
    if (this.admitted.size >= this.max) return OVERFLOW;
    this.admitted.add(subject);
    return subject;
  }
}
