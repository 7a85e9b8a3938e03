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

  it.each([
    ['an object', { 'X-A': '1', 'x-b': ['2', '3'] }],
    ['a flat list', ['X-A', '1', 'x-b', '2', 'x-b', '3']],
  ])('replace earlier ones and keep repeated ones, as %s', (_form, headers) => {
    const made = response();
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
    [200, 'OK', { 'x-none': undefined }, false],
    [200, 'OK', { 'x-list': ['a', '\u041f'] }, false],
    [200, 'OK', { 'x none': '1' }, false],
    [200, 'OK', ['x-odd'], false],
    [200, 'OK', [['x-a', '1']] as never, false],
    [200, 'OK', ['x-a', '1'], true],
  ])('%s "%s" %j: Node takes the head: %s', (status, reason, headers, takes) => {
    const made = response();
    expect(applyHead(made, { status, reason, headers })).toBe(takes);
    if (!takes) expect([made.statusCode, { ...made.getHeaders() }]).toEqual([200, { 'x-a': 'before' }]);
  });
});
