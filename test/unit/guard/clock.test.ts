import { afterEach, expect, it, vi } from 'vitest';
import { cockatielBreakers } from '../../../src/entries/guard/cockatiel.js';
import { until } from '../../fixtures/until.js';

afterEach(() => void vi.restoreAllMocks());

it('a breaker is open for its time, whatever becomes of the clock meanwhile', async () => {
  const make = await cockatielBreakers();
  for (const setByMs of [-3_600_000, 3_600_000]) {
    const rules = { openMs: 1_000, probes: 1, tripped: () => true, opened() {}, closed() {} };
    const breaker = make(rules);
    await breaker.run(async () => ({ judgedAs: 'failure' }));
    const now = Date.now;
    vi.spyOn(Date, 'now').mockImplementation(() => now() + setByMs);
    const ask = () => breaker.run(async () => ({ judgedAs: 'success' }));
    expect([breaker.state, ask()]).toEqual(['open', null]);
    await until('it to try again', () => breaker.state === 'half-open');
    await ask();
    await until('it to close', () => breaker.state === 'closed');
    vi.restoreAllMocks();
  }
});
