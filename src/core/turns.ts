import { setImmediate as nextTurn } from 'node:timers/promises';

/** Longer work than this is spread over turns of the event loop, milliseconds. */
const TURN_MS = 3;

/** Gives other work a turn of the event loop. */
export class Turns {
  private sinceMs = performance.now();

  constructor(private readonly turnMs = TURN_MS) {}

  async rest(): Promise<void> {
    if (performance.now() - this.sinceMs < this.turnMs) return;
    await nextTurn();
    this.sinceMs = performance.now();
  }
}

export type Steps<T> = Generator<undefined, T>;

/** Takes the steps one after the other, and gives other work its turns in between. */
export async function inTurns<T>(steps: Steps<T>, turns = new Turns()): Promise<T> {
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done === true) return step.value;
    await turns.rest();
  }
}

/** All of them at once, for who cannot wait. */
export function inOneTurn<T>(steps: Steps<T>): T {
  for (let step = steps.next(); ; step = steps.next()) if (step.done === true) return step.value;
}
