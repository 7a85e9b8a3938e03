import { describe, expect, it } from 'vitest';
import { staticGates } from '../../../../src/index.js';

const users = Array.from({ length: 20_000 }, (_, i) => ({ userId: `user-${i}` }));

describe('staticGates', () => {
  it('turns `true` on for everybody and `false` for nobody', () => {
    const gates = staticGates({ all: true, none: false, one: 1, zero: 0 });
    for (const unit of users.slice(0, 500)) {
      expect([gates.check('all', unit).on, gates.check('none', unit).on]).toEqual([true, false]);
      expect([gates.check('one', unit).on, gates.check('zero', unit).on]).toEqual([true, false]);
    }
  });

  it.each([0.01, 0.1, 0.5, 0.9])('turns a share of %s on', (share) => {
    const gates = staticGates({ some: share });
    const on = users.filter((unit) => gates.check('some', unit).on).length;
    const error = Math.sqrt(users.length * share * (1 - share));
    expect(Math.abs(on - users.length * share)).toBeLessThan(4 * error);
    expect(gates.share?.('some')).toBe(share);
  });

  it('gives a unit the same variant every time, in every process', () => {
    const some = users.map((unit) => staticGates({ some: 0.5 }).check('some', unit).on);
    expect(users.map((unit) => staticGates({ some: 0.5 }).check('some', unit).on)).toEqual(some);
    // Pinned: a different hash would hand units of a running experiment the other variant.
    expect(some.slice(0, 8)).toEqual([false, true, true, true, true, false, true, false]);
  });

  it('draws each gate anew', () => {
    const gates = staticGates({ a: 0.5, b: 0.5 });
    const both = users.filter((unit) => gates.check('a', unit).on && gates.check('b', unit).on).length;
    expect(both / users.length).toBeGreaterThan(0.235);
    expect(both / users.length).toBeLessThan(0.265);
  });

  it('keeps who was on when the share grows', () => {
    const [small, large] = [staticGates({ some: 0.2 }), staticGates({ some: 0.6 })];
    for (const unit of users) if (small.check('some', unit).on) expect(large.check('some', unit).on).toBe(true);
  });

  it('says that it does not know a gate', () => {
    const gates = staticGates({ known: true });
    expect(gates.check('toString', users[0]!)).toEqual({ on: false, problem: 'staticGates() does not name it' });
    expect(gates.share?.('toString')).toBeNull();
  });

  it.each<[string, unknown, string]>([
    ['above 1', 1.5, '`1.5` (number)'],
    ['NaN', NaN, '`NaN` (number)'],
    ['a text', 'half', '`"half"` (string)'],
  ])('refuses a share that is %s', (_name, share, given) => {
    expect(() => staticGates({ some: share as number })).toThrow(
      `PERF_ERR_OPTION: \`staticGates.some\` must be \`true\`, \`false\` or a share from 0 to 1, got ${given}.`,
    );
  });

  it.each<[unknown, string]>([
    [undefined, '`undefined`'],
    [null, '`null`'],
    [['new-checkout'], 'an array of 1'],
    [new Map([['new-checkout', true]]), 'an object'],
  ])('is not made of %s', (given, told) => {
    expect(() => staticGates(given as never)).toThrow(
      `PERF_ERR_OPTION: \`staticGates\` must be a plain object of gates, got ${told}.`,
    );
  });
});
