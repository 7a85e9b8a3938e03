import { expect, it } from 'vitest';
import { badOpenings } from '../../scripts/english.mjs';

it('the rule of comments refuses those that do not begin with their subject', () => {
  const text = [
    '/** Of the calls: those that failed. */',
    'const a = 1;',
    '  // Where it goes',
    '/**',
    ' * What it is.',
    ' */',
  ];
  expect(badOpenings(text.join('\n')).map(([line]: [number, string]) => line)).toEqual([1, 3, 5]);
});

it('the rule of comments accepts subjects, verbs, and sentences that go on in a second line', () => {
  const text = [
    '/** Returns the calls. What follows is a sentence within. */',
    '// The server answers requests of those',
    '// Who are known to it, until it closes.',
    "const url = 'https://example.org/'; // the address of what answers",
  ];
  expect(badOpenings(text.join('\n'))).toEqual([]);
});
