import { describe, expect, it } from 'vitest';
import { openedText } from '../../../src/history/text.js';

/** The sentence of a site that is slower since its event loop is busier. */
const explain = (name: string): string =>
  openedText({
    kind: 'worse',
    since: Date.UTC(2026, 0, 5),
    against: 'week',
    scope: { scope: 'site', name: null, detail: null },
    moved: [],
    release: null,
    because: [{ part: 'loop-wait', name, share: 0.66 }],
  });

describe('the reason of a verdict that is a wait for the event loop', () => {
  it('names the route that has kept the loop', () => {
    expect(explain('GET /report')).toContain(' 66 % of it is waiting for the event loop: GET /report. ');
  });

  it('is said once where no route is known', () => {
    expect(explain('the event loop')).toContain(' 66 % of it is waiting for the event loop. ');
  });
});
