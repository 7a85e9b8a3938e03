import { describe, expect, it } from 'vitest';
import {
  hasMember,
  isCompressible,
  mayEncode,
  mayKeep,
  varyWithAcceptEncoding,
  type FieldValue,
} from '../../../../src/compression/rules/policy.js';

const head = (status: number, headers: Record<string, FieldValue>) => ({
  status,
  header: (name: string): FieldValue => headers[name],
});
const json = { 'content-type': 'application/json; charset=utf-8' };

describe('what may be encoded', () => {
  it.each([
    'application/json',
    'Application/JSON; charset=utf-8',
    'application/problem+json',
    'application/vnd.api+json',
    'application/atom+xml',
    'image/svg+xml',
    'text/html; charset=utf-8',
    'text/csv',
    'application/javascript',
    'application/x-ndjson',
    'application/wasm',
    'font/ttf',
  ])('%s compresses', (type) => expect(isCompressible(type)).toBe(true));

  it.each([
    'text/event-stream',
    'text/event-stream; charset=utf-8',
    'application/octet-stream',
    'image/png',
    'image/jpeg',
    'video/mp4',
    'application/zip',
    'application/pdf',
    'font/woff2',
    'application/grpc',
    'multipart/byteranges',
    '',
  ])('%s does not', (type) => expect(isCompressible(type)).toBe(false));

  it('leaves alone what has no body, is a part or an error, is encoded already or may not be transformed', () => {
    expect(mayEncode(head(200, json))).toBe(true);
    for (const status of [101, 204, 205, 206, 304, 400, 404, 500]) expect(mayEncode(head(status, json))).toBe(false);
    expect(mayEncode(head(200, {}))).toBe(false);
    for (const [name, value] of [
      ['content-encoding', 'gzip'],
      ['content-range', 'bytes 0-1/2'],
      ['content-digest', 'sha-256=:4REjxQ4yrqUVicfSKYNO/cF9zNj5ANbzgDZt3/h3Qxo=:'],
      ['digest', 'SHA-256=4REjxQ4yrqUVicfSKYNO/cF9zNj5ANbzgDZt3/h3Qxo='],
      ['cache-control', 'public, No-Transform'],
    ] as const) {
      expect(mayEncode(head(200, { ...json, [name]: value }))).toBe(false);
    }
    expect(mayEncode(head(200, { ...json, 'content-encoding': 'identity' }))).toBe(true);
    expect(mayEncode(head(200, { ...json, 'content-length': '9000' }))).toBe(true);
    expect(mayEncode(head(200, { ...json, 'cache-control': 'x="no-transform-not"' }))).toBe(true);
  });
});

describe('what may be kept for others', () => {
  it('is a plain 200 to GET or HEAD', () => {
    expect(mayKeep(head(200, json), 'GET')).toBe(true);
    expect(mayKeep(head(200, json), 'HEAD')).toBe(true);
    expect(mayKeep(head(200, json), 'POST')).toBe(false);
    for (const status of [201, 203, 404, 500]) expect(mayKeep(head(status, json), 'GET')).toBe(false);
  });

  it.each([
    { 'set-cookie': ['sid=1'] },
    { 'cache-control': 'private' },
    { 'cache-control': 'Private="x-user", max-age=0' },
    { 'cache-control': ['max-age=0', 'no-store'] },
  ])('never with %o', (headers) => expect(mayKeep(head(200, { ...json, ...headers }), 'GET')).toBe(false));
});

describe('header lists', () => {
  it.each([
    [undefined, 'accept-encoding'],
    ['', 'accept-encoding'],
    ['Origin', 'Origin, accept-encoding'],
    ['Accept-Encoding', 'Accept-Encoding'],
    ['ACCEPT-ENCODING, Origin', 'ACCEPT-ENCODING, Origin'],
    [['Origin', 'Accept-Encoding'], 'Origin, Accept-Encoding'],
    ['x-accept-encoding', 'x-accept-encoding, accept-encoding'],
    ['*', '*'],
  ] as const)('Vary %o becomes %s', (given, wanted) => expect(varyWithAcceptEncoding(given)).toBe(wanted));

  it('finds members by name, not by text', () => {
    expect(hasMember('max-age=1, private', 'private')).toBe(true);
    expect(hasMember('x-private', 'private')).toBe(false);
  });
});
