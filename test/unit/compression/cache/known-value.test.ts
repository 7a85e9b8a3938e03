import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KnownValue } from '../../../../src/compression/cache/known-value.js';

/** What JSON handlers return, and what is nearly it. */
const value = fc.letrec((tie) => ({
  leaf: fc.oneof(
    fc.string(),
    fc.double(),
    fc.integer({ min: 0, max: 2 }),
    fc.boolean(),
    fc.constantFrom(null, undefined, -0),
    fc.date({ noInvalidDate: true }),
  ),
  tree: fc.oneof(
    { maxDepth: 4 },
    tie('leaf'),
    fc.array(tie('tree'), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'c', '0', '1'), tie('tree'), { maxKeys: 4, noNullPrototype: true }),
  ),
})).tree;

const copy = (given: unknown): unknown => {
  if (typeof given !== 'object' || given === null) return given;
  if (given instanceof Date) return new Date(given);
  if (Array.isArray(given)) return given.map(copy);
  return Object.fromEntries(Object.entries(given).map(([key, each]) => [key, copy(each)]));
};

class Flight {
  constructor(
    readonly callsign: string,
    readonly at: Date,
  ) {}

  get route(): string {
    return 'EDDF-KJFK';
  }
}

describe('a known value', () => {
  it('is only ever recognised in what JSON.stringify makes the same text of', () => {
    fc.assert(
      fc.property(value, value, (one, other) => {
        const known = KnownValue.of(one)!;
        if (known.equals(other)) expect(JSON.stringify(other)).toBe(JSON.stringify(one));
      }),
      { numRuns: 3_000 },
    );
  });

  it('is recognised in a copy, unless it holds NaN', () => {
    fc.assert(
      fc.property(value, (one) => {
        const hasNaN = JSON.stringify([one], (_key, each: unknown) => (Number.isNaN(each) ? 'NaN' : each)).includes(
          '"NaN"',
        );
        fc.pre(!hasNaN);
        expect(KnownValue.of(one)!.equals(copy(one))).toBe(true);
      }),
    );
  });

  it.each<[string, (flights: any) => void]>([
    ['a number deep inside', (flights) => (flights[1].track.altitude += 1)],
    ['a text', (flights) => (flights[1].state = 'Boarding')],
    ['a key more', (flights) => (flights[0].note = undefined)],
    ['a key less', (flights) => delete flights[1].track],
    ['keys in another order', (flights) => (flights[0] = { track: flights[0].track, state: flights[0].state })],
    ['an element more', (flights) => flights.push(null)],
    ['an element less', (flights) => flights.pop()],
    ['two elements swapped', (flights) => flights.reverse()],
    ['a date moved on', (flights) => flights[0].track.seen.setTime(1)],
    ['a date that is no longer one', (flights) => (flights[0].track.seen = Object.create(Date.prototype))],
    ['a date that renders itself', (flights) => (flights[0].track.seen.toJSON = () => 'now')],
    ['an object that renders itself', (flights) => (flights[0].toJSON = () => 'x')],
    ['an element that renders itself', (flights) => (flights.toJSON = () => 'x')],
    ['a prototype that renders', (flights) => Object.setPrototypeOf(flights[1], { toJSON: () => 'x' })],
    ['an array in an object', (flights) => (flights[0].track = [])],
    ['an object in an array', (flights) => (flights[1] = 0)],
    ['a getter', (flights) => Object.defineProperty(flights[0], 'state', { get: () => 'x', enumerable: true })],
    ['a hidden key', (flights) => Object.defineProperty(flights[0], 'state', { enumerable: false })],
    ['a number for a text', (flights) => (flights[0].state = 0)],
  ])('is not recognised after a change in place: %s', (_name, change) => {
    const flights = [
      { state: 'En Route', track: { altitude: 1, seen: new Date(0) } },
      { state: 'Approach', track: { altitude: 2, seen: new Date(0) } },
    ];
    const known = KnownValue.of(flights)!;
    expect(known.equals(flights)).toBe(true);
    change(flights);
    expect(known.equals(flights)).toBe(false);
  });

  it('knows instances of classes by their own fields and their class', () => {
    const known = KnownValue.of(new Flight('DLH1', new Date(5)))!;
    expect(known.equals(new Flight('DLH1', new Date(5)))).toBe(true);
    expect(known.equals({ callsign: 'DLH1', at: new Date(5) })).toBe(false);
    expect(known.equals(new Flight('DLH2', new Date(5)))).toBe(false);
  });

  it('is not recognised where everything renders itself all at once', () => {
    const known = KnownValue.of({ a: [{ b: 1 }] })!;
    Reflect.defineProperty(Object.prototype, 'toJSON', { value: () => 'x', configurable: true });
    try {
      expect(known.equals({ a: [{ b: 1 }] })).toBe(false);
    } finally {
      Reflect.deleteProperty(Object.prototype, 'toJSON');
    }
  });

  it.each<[string, unknown]>([
    ['a function', { a: () => 1 }],
    ['a symbol', { a: Symbol('x') }],
    ['a bigint', { a: 1n }],
    ['a boxed number', { a: Object(1) as unknown }],
    ['a toJSON', { toJSON: () => 1 }],
    ['a buffer', Buffer.from('x')],
    ['inherited keys', Object.create({ a: 1 })],
    ['depth', Array.from({ length: 200 }).reduce((inner) => [inner], 0)],
  ])('is not made of %s', (_name, given) => {
    expect(KnownValue.of(given)).toBeNull();
  });
});
