/** Lookups that are judged together. */
const WINDOW = 16;
/** Fewer hits than this in a window (12.5 %) close the gate. */
const MIN_HITS = 2;
/** Responses that then pass the cache by, before the route gets another window. */
const CLOSED_FOR = 256;

/** Keeps routes whose bodies are all different, one for each user for example, from paying for a cache that cannot help them. */
export class AdmissionGate {
  private lookups = 0;
  private hits = 0;
  private closedFor = 0;

  /** Whether this response may use the cache. Counts it. */
  admits(): boolean {
    if (this.closedFor === 0) return true;
    this.closedFor -= 1;
    return false;
  }

  /** Tells the outcome of a lookup. */
  looked(hit: boolean): void {
    this.lookups += 1;
    if (hit) this.hits += 1;
    if (this.lookups < WINDOW) return;
    if (this.hits < MIN_HITS) this.closedFor = CLOSED_FOR;
    this.lookups = 0;
    this.hits = 0;
  }
}
