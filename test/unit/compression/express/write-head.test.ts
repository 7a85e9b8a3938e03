import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { setAll } from '../../../../src/compression/express/held-response.js';

describe('headers given to writeHead', () => {
  const response = (): ServerResponse => {
    const made = new ServerResponse(new IncomingMessage(new Socket()));
    made.setHeader('x-a', 'before');
    return made;
  };

  it.each([
    ['an object', { 'X-A': '1', 'x-b': ['2', '3'] }],
    ['a flat list', ['X-A', '1', 'x-b', '2', 'x-b', '3']],
    [
      'a list of pairs',
      [
        ['X-A', '1'],
        ['x-b', '2'],
        ['x-b', '3'],
      ],
    ],
  ])('replace earlier ones and keep repeated ones, as %s', (_form, headers) => {
    const made = response();
    setAll(made, headers);
    expect({ ...made.getHeaders() }).toEqual({ 'x-a': '1', 'x-b': ['2', '3'] });
  });

  it('are refused as Node refuses them', () => {
    expect(() => setAll(response(), { 'x-none': undefined })).toThrow('Invalid value "undefined" for header "x-none"');
  });

  it('are none when none are given', () => {
    const made = response();
    setAll(made, undefined);
    expect({ ...made.getHeaders() }).toEqual({ 'x-a': 'before' });
  });
});
