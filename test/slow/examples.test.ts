import { beforeAll, describe, it } from 'vitest';
import { Examples } from '../fixtures/examples.js';

/** They compare figures, or take long: test/measured/examples. */
const ELSEWHERE = ['ab-test', 'demo', 'going-live', 'history', 'resilience', 'slow-upstream'];

// Not in milliseconds: starting a Node process each takes seconds, many on a slow machine.
describe('examples', { timeout: 450_000 }, () => {
  const examples = new Examples('.cache/run/slow');
  beforeAll(() => examples.copy(), 300_000);

  // At a time: most of each is spent waiting. How many is `maxConcurrency` of vitest.config.ts.
  it.concurrent.for(Examples.names.filter((name) => !ELSEWHERE.includes(name)))(
    'examples/%s runs with one command, and ends',
    (name, context) => examples.check(name, context),
  );
});
