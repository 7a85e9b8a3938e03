import { expect, it } from 'vitest';
import { isUpstreamFailure } from '../../../src/guard/outcome.js';

it.each([
  ['fetch', new DOMException('This operation was aborted', 'AbortError')],
  ['Node', Object.assign(new Error('The operation was aborted'), { code: 'ABORT_ERR' })],
  ['a reason of its own with that name', Object.assign(new Error('client gone'), { name: 'AbortError' })],
  ['axios', Object.assign(new Error('canceled'), { name: 'CanceledError', code: 'ERR_CANCELED' })],
])('what the application has given up itself is no failure of the upstream, as %s says it', (_, error) => {
  expect(isUpstreamFailure(error, true)).toBe(false);
  expect(isUpstreamFailure(new Error('socket hang up'), true)).toBe(true);
});
