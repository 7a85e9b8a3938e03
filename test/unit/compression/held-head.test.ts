import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { applyHead } from '../../../src/compression/held-head.js';

describe('headers given to writeHead', () => {
  const response = (): ServerResponse => {
    const made = new ServerResponse(new IncomingMessage(new Socket()));
    made.setHeader('x-a', 'before');
    return made;
  };

  it('replace earlier ones and keep repeated ones', () => {
    const made = response();
    const headers = { 'X-A': '1', 'x-b': ['2', '3'] };
    expect(applyHead(made, { status: 200, reason: undefined, headers })).toBe(true);
    expect({ ...made.getHeaders() }).toEqual({ 'x-a': '1', 'x-b': ['2', '3'] });
  });

  it('are none when none are given', () => {
    const made = response();
    expect(applyHead(made, { status: 200, reason: undefined, headers: undefined })).toBe(true);
    expect({ ...made.getHeaders() }).toEqual({ 'x-a': 'before' });
  });

  it.each([
    [200, 'OK', {}, true],
    [99, 'OK', {}, false],
    [Number.NaN, 'OK', {}, false],
    [200, '\u041f', {}, false],
    [200, undefined, undefined, true],
    [200, 'OK', ['x-a', '1'], false],
    [200, 'OK', [['x-a', '1']] as never, false],
  ])('%s "%s" %j are set: %s', (status, reason, headers, sets) => {
    const made = response();
    expect(applyHead(made, { status, reason, headers })).toBe(sets);
    if (!sets) expect([made.statusCode, { ...made.getHeaders() }]).toEqual([200, { 'x-a': 'before' }]);
  });

  it.each([
    [{ 'x-none': undefined }, {}],
    [{ 'x-b': '1', 'x-list': ['a', '\u041f'] }, { 'x-b': '1' }],
    [{ 'x-b': '1', 'x none': '1' }, { 'x-b': '1' }],
  ])('that Node refuses throw its error, and leave those before it, as Node does: %j', (headers, left) => {
    const made = response();
    expect(() => applyHead(made, { status: 404, reason: undefined, headers })).toThrow(/Invalid|must be a valid/);
    expect({ ...made.getHeaders() }).toEqual({ 'x-a': 'before', ...left });
  });
});
