import { getHeapSpaceStatistics } from 'node:v8';

/** Of a busy server one of so many was taken soon after a collection. */
const MEASUREMENTS = 10;
/** A collection copies what was made since the last one and what survived that: V8 moves objects out at their second. */
const SURVIVED_TWO = 2;

/** How much one collection may have to walk or copy, bytes. */
export interface HeapSize {
  /**
   * The old generation, and what the young one has kept of late: an estimate, no bound on the next collection. To be called
   * again and again: before the tenth time all counts that the young one has room for.
   */
  measure(): number;
  /** Now or when it was last measured: the old generation, and what the young one has room for. Called inside the interrupt. */
  mostBytes(): number;
  /**
   * What one collection of the young generation since the last measurement may have copied, as long as no full one was done: what it
   * left lies in the young generation still, or is what the old one has grown by. Called inside the interrupt.
   */
  survivedBytes(): number;
}

/**
 * This process's, from V8. The young generation's room alone says little: on Node 24 it grows to 64 MB for any busy server,
 * of which a collection finds nearly nothing alive.
 */
export class V8HeapSize implements HeapSize {
  private oldBytes = 0;
  private youngRoomBytes = 0;
  private youngUsedBytes = 0;
  private measuredOldBytes = 0;
  private measuredMostBytes = 0;
  private readonly youngUsed = new Float64Array(MEASUREMENTS);
  private count = 0;

  constructor(private readonly spaces: typeof getHeapSpaceStatistics = getHeapSpaceStatistics) {}

  measure(): number {
    this.read();
    this.measuredOldBytes = this.oldBytes;
    this.measuredMostBytes = this.oldBytes + this.youngRoomBytes;
    this.youngUsed[this.count % MEASUREMENTS] = this.youngUsedBytes;
    this.count += 1;
    return this.oldBytes + Math.min(this.youngRoomBytes, this.keptBytes() * SURVIVED_TWO);
  }

  mostBytes(): number {
    this.read();
    return Math.max(this.measuredMostBytes, this.oldBytes + this.youngRoomBytes);
  }

  survivedBytes(): number {
    this.read();
    return this.youngUsedBytes + Math.max(0, this.oldBytes - this.measuredOldBytes);
  }

  /** The least in use of the last measurements: soon after a collection that is what it has left. */
  private keptBytes(): number {
    if (this.count < MEASUREMENTS) return Infinity;
    let least = Infinity;
    for (let i = 0; i < MEASUREMENTS; i++) if (this.youngUsed[i]! < least) least = this.youngUsed[i]!;
    return least;
  }

  private read(): void {
    // Told at the end only: a look may come in the middle of this and read anew.
    let oldBytes = 0;
    const spaces = this.spaces();
    for (let i = 0; i < spaces.length; i++) {
      const { space_name: name, space_used_size: used, space_size: size } = spaces[i]!;
      if (name === 'new_space') {
        // Half of it is kept free to copy to.
        this.youngRoomBytes = size * 0.5;
        this.youngUsedBytes = used;
      } else oldBytes += used;
    }
    this.oldBytes = oldBytes;
  }
}
