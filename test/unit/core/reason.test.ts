import { expect, it } from 'vitest';
import { describeReason } from '../../../src/core/reason.js';

const throwing = {
  toString: () => {
    throw new Error('not even a text');
  },
};

it.each([
  [new Error('no such table\n  at line 2'), 'no such table\\u000a  at line 2'],
  [Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }), 'ECONNREFUSED'],
  [new TypeError(), 'TypeError'],
  ['a text', 'a text'],
  [new Error('connect redis://app:hunter2@cache:6379 refused'), 'connect redis://[redacted]@cache:6379 refused'],
  [new Error('401 for Bearer eyJhbGciOiJ.eyJzdWIiOiJ.sig-1, retry'), '401 for Bearer [redacted] retry'],
  ['no such key: sk_live_4711471147114711', 'no such key: [redacted]'],
  ['Basic authentication failed for http://cache:6379/a@b', 'Basic authentication failed for http://cache:6379/a@b'],
  [undefined, 'undefined'],
  [Object.create(null), 'an object that cannot be printed'],
  [throwing, 'an object that cannot be printed'],
])('the reason of a failure is one line, whatever was thrown: %#', (thrown, reason) => {
  expect(describeReason(thrown)).toBe(reason);
});
