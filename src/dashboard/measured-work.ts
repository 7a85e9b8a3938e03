import { Turns, type Steps } from '../core/turns.js';

/** So long the page's work keeps the event loop at a time, milliseconds; longer where one step is longer. */
const TURN_MS = 1;

/** Work that gives others their turns, and how long it kept the event loop, milliseconds. */
export class MeasuredWork {
  ms = 0;
  private readonly turns = new Turns(TURN_MS);

  constructor(private readonly nowMs: () => number) {}

  async inTurns<T>(steps: Steps<T>): Promise<T> {
    for (;;) {
      const startedMs = this.nowMs();
      const step = steps.next();
      this.ms += this.nowMs() - startedMs;
      if (step.done === true) return step.value;
      await this.turns.rest();
    }
  }
}
