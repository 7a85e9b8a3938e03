import { setImmediate as nextTurn } from 'node:timers/promises';

/** Longer work than this is spread over turns of the event loop, milliseconds. */
const TURN_MS = 5;

/** Gives other work a turn of the event loop. */
export class Turns {
  private sinceMs = performance.now();

  async rest(): Promise<void> {
    if (performance.now() - this.sinceMs < TURN_MS) return;
    await nextTurn();
    this.sinceMs = performance.now();
  }
}
