import { expect, it } from 'vitest';
import { pack, unpack, unpacker } from '../../../src/history/rows/message-pack.js';

it('gives back whole numbers, fractions, texts, bytes and maps as they were', () => {
  const numbers = [0, 127, 128, 255, 65_535, 65_536, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1, -1, -32, -33, -70_000, 1.5];
  for (const number of numbers) expect(unpack(pack(number))).toBe(number);
  const long = 'é'.repeat(300);
  const map = new Map<number | string, string | Uint8Array>([
    [-1, ''],
    [long, long],
    ['bytes', Buffer.alloc(70_000, 7)],
  ]);
  expect(unpack(pack(map))).toEqual(map);
  const next = unpacker(pack(1, 'two', new Map()));
  expect([next(), next(), next()]).toEqual([1, 'two', new Map()]);
  expect(unpack(Buffer.from('90', 'hex'))).toEqual(new Map());
});

it.each([
  ['cc80', 128],
  ['cd0100', 256],
  ['ce00010000', 65_536],
  ['cf0000000100000000', 2 ** 32],
  ['d0df', -33],
  ['d1ff7f', -129],
  ['d2ffff7fff', -32_769],
  ['d3ffffffff7fffffff', -(2 ** 31) - 1],
  ['a161', 'a'],
  ['d90161', 'a'],
])('reads what Redis writes: %s', (hex, value) => {
  expect(unpack(Buffer.from(hex, 'hex'))).toBe(value);
});

it.each(['', 'cd01', 'a361', '81', '8101', '81c0c0', '9101', 'c1', 'de0001', '81810101', 'c6ffffffff', 'dc0001'])(
  'refuses what is none, or ends too early: %s',
  (hex) => {
    expect(() => unpack(Buffer.from(hex, 'hex'))).toThrow(RangeError);
  },
);
