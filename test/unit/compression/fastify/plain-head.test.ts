import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { PlainHeads } from '../../../../src/compression/fastify/plain-head.js';

const JSON_TYPE = 'application/json; charset=utf-8';
const PLAIN = { 'content-type': JSON_TYPE, vary: 'accept-encoding', 'content-length': '11' };

interface Given {
  type?: string;
  method?: string;
  version?: readonly [number, number];
  keepAlive?: boolean;
}

function responseTo({ method = 'GET', version = [1, 1], keepAlive = true }: Given): ServerResponse {
  const request = new IncomingMessage(new Socket());
  [request.httpVersionMajor, request.httpVersionMinor] = version;
  request.method = method;
  const response = new ServerResponse(request);
  response.shouldKeepAlive = keepAlive;
  response.sendDate = false;
  return response;
}

const headOf = (response: ServerResponse): string[] =>
  (response as unknown as { _header: string })._header.toLowerCase().split('\r\n').sort();

/** The head that Node makes, and the one that it makes of a prepared response. */
function heads(status: number, headers: object, given: Given = {}): { own: string[]; prepared: string[] } {
  const own = responseTo(given);
  own.writeHead(status, headers as never);
  const prepared = responseTo(given);
  new PlainHeads().prepare(prepared, given.type ?? JSON_TYPE);
  prepared.writeHead(status, headers as never);
  return { own: headOf(own), prepared: headOf(prepared) };
}

const steps = ServerResponse.prototype as unknown as { _storeHeader: unknown };
const stepOf = (response: ServerResponse): unknown => (response as unknown as { _storeHeader: unknown })._storeHeader;

describe('the head of a plain response', () => {
  afterEach(() => vi.restoreAllMocks());

  it.each([
    ['200', 200, PLAIN, {}],
    ['another status', 201, PLAIN, {}],
    ['an empty body', 200, { ...PLAIN, 'content-length': '0' }, {}],
    ['to HEAD', 200, PLAIN, { method: 'HEAD' }],
    ['a status without a body', 304, PLAIN, {}],
    ['to HTTP/1.0', 200, PLAIN, { version: [1, 0], keepAlive: true }],
    ['to HTTP/1.0 that closes', 200, PLAIN, { version: [1, 0], keepAlive: false }],
    ['to a client that closes', 200, PLAIN, { keepAlive: false }],
    ['a further header', 200, { ...PLAIN, 'set-cookie': ['a=1', 'b=2'] }, {}],
    ['a header that closes', 200, { ...PLAIN, connection: 'close' }, {}],
    ['another vary', 200, { ...PLAIN, vary: 'origin, accept-encoding' }, {}],
    ['another type', 200, { ...PLAIN, 'content-type': 'text/plain' }, {}],
    ['no length', 200, { 'content-type': JSON_TYPE, vary: 'accept-encoding' }, {}],
    ['a length that is no number', 200, { ...PLAIN, 'content-length': 'x' }, {}],
    ['a length that is no text', 200, { ...PLAIN, 'content-length': 11 }, {}],
    ['three others', 200, { a: '1', b: '2', c: '3' }, {}],
    ['a list', 200, ['content-type', JSON_TYPE, 'vary', 'accept-encoding', 'content-length', '11'], {}],
  ] as const)('is what Node makes: %s', (_name, status, headers, given) => {
    const { own, prepared } = heads(status, headers, given);
    expect(prepared).toEqual(own);
  });

  it('is what Node makes where headers were set before', () => {
    const response = responseTo({});
    new PlainHeads().prepare(response, JSON_TYPE);
    response.setHeader('x-early', '1');
    response.writeHead(200, PLAIN);
    expect(headOf(response)).toContain('x-early: 1');
    expect(headOf(response)).toContain('content-length: 11');
  });

  it('is not validated by Node again', () => {
    const response = responseTo({});
    new PlainHeads().prepare(response, JSON_TYPE);
    expect(stepOf(response)).not.toBe(steps._storeHeader);
    const exec = vi.spyOn(RegExp.prototype, 'exec');
    response.writeHead(200, PLAIN);
    const validated = exec.mock.calls.flat();
    exec.mockRestore();
    expect(validated).not.toContain('accept-encoding');
    expect(validated).not.toContain(JSON_TYPE);
    expect(headOf(response)).toContain('vary: accept-encoding');
  });

  it('is refused by Node, as ever, for a type that is no header value', () => {
    const type = 'text/html\r\nset-cookie: a=1';
    const response = responseTo({});
    new PlainHeads().prepare(response, type);
    expect(() => response.writeHead(200, { ...PLAIN, 'content-type': type })).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_CHAR' }),
    );
  });

  it('is left to a response that has its own way', () => {
    const response = responseTo({});
    const own = vi.fn();
    Object.assign(response, { _storeHeader: own });
    new PlainHeads().prepare(response, JSON_TYPE);
    expect(stepOf(response)).toBe(own);
  });

  it('is left to Node where its step has another meaning', async () => {
    const nodes = steps._storeHeader as (this: ServerResponse, firstLine: string, headers: unknown) => void;
    // Takes a first line to be one line.
    steps._storeHeader = function (this: ServerResponse, firstLine: string, headers: unknown) {
      nodes.call(this, `${firstLine.split('\r\n')[0]!}\r\n`, headers);
    };
    vi.resetModules();
    const other = await import('../../../../src/compression/fastify/plain-head.js');
    const response = responseTo({});
    new other.PlainHeads().prepare(response, JSON_TYPE);
    const left = stepOf(response) === steps._storeHeader;
    steps._storeHeader = nodes;
    expect(left).toBe(true);
  });

  it('is Node’s where a length was taken away before', () => {
    const response = responseTo({});
    response.removeHeader('content-length');
    new PlainHeads().prepare(response, JSON_TYPE);
    response.writeHead(200, PLAIN);
    expect(headOf(response)).toContain('content-length: 11');
    expect(headOf(response).join()).not.toContain('chunked');
  });

  it('is looked at once for each type, and unseen by who hears of responses', () => {
    const heard = vi.spyOn(ServerResponse.prototype, 'writeHead');
    const plainHeads = new PlainHeads();
    const taken = new Map<string, Set<unknown>>();
    for (let i = 0; i < 200; i++) {
      const type = `text/x-${i % 100}`;
      const response = responseTo({});
      plainHeads.prepare(response, type);
      taken.set(type, (taken.get(type) ?? new Set()).add(stepOf(response)));
    }
    expect(heard).not.toHaveBeenCalled();
    expect([...taken.values()].filter(({ size }) => size !== 1)).toEqual([]);
    // An application that makes up types does not fill the memory.
    expect(new Set([...taken.values()].flatMap((one) => [...one])).size).toBe(65);
  });

  it('follows the type from response to response', () => {
    const plainHeads = new PlainHeads();
    for (const type of [JSON_TYPE, 'text/plain', JSON_TYPE]) {
      const response = responseTo({});
      plainHeads.prepare(response, type);
      response.writeHead(200, { ...PLAIN, 'content-type': type });
      expect(headOf(response)).toContain(`content-type: ${type}`);
    }
  });
});
