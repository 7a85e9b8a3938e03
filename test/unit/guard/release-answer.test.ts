import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { releaseAnswer } from '../../../src/guard/release-answer.js';

it('ends streams that nobody reads, wherever a client has them, and nothing that is no stream', () => {
  const streams = Array.from({ length: 4 }, () => Readable.from([]));
  const [self, body, data, thrown] = streams;
  for (const answer of [self, { body }, { data }, { response: { data: thrown } }]) releaseAnswer(answer);
  expect(streams.map(({ destroyed }) => destroyed)).toEqual([true, true, true, true]);
  let deleted = 0;
  const row = { destroy: () => (deleted += 1) };
  for (const answer of [row, { data: row }, { body: 'text', data: null }, null, 'text']) releaseAnswer(answer);
  expect(deleted).toBe(0);
});

it('never throws', () => {
  const hostile = {
    get body(): never {
      throw new Error('read twice');
    },
  };
  expect(() => releaseAnswer(hostile)).not.toThrow();
});
