import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect, createSecureServer, createServer } from 'node:http2';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createReplay, formatAddress, quote, type ReplayRules } from '../../../../src/event-loop/replay/curl.js';
import { SecretNames } from '../../../../src/core/secret-names.js';
import { RequestState } from '../../../../src/request/request-state.js';
import { Route } from '../../../../src/request/routes.js';
import { CERTIFICATE, KEY } from '../../../fixtures/certificate.js';

const secrets = new SecretNames([]);
const request = {
  method: 'GET',
  url: '/reports/7?year=2024',
  headers: { host: 'api.test:3000', accept: 'application/json', 'x-tenant': 'acme', authorization: 'Bearer abcdef' },
  body: undefined as unknown,
};
const post = {
  ...request,
  method: 'POST',
  headers: { host: 'api.test', 'content-type': 'application/json', 'content-length': '60' },
  body: { name: "O'Hara", password: 'hunter2' },
};
const route = new Route('GET', '/reports/:id', null, () => {});
const curlOf = (given: object, allowed: ReplayRules): string | null =>
  createReplay(
    new RequestState(given as never, null, 0, { findRoute: () => route } as never),
    allowed,
    secrets,
    address,
  );
const rules = { allowHeaders: [], maxBodyBytes: 0 };
const address = '10.0.0.7:3000';

describe('curl line', () => {
  it('sends method, URL and harmless headers', () => {
    expect(curlOf(request, rules)).toBe(
      "curl --globoff 'http://10.0.0.7:3000/reports/7?year=2024' -H 'accept: application/json'",
    );
  });

  it('adds the headers that are allowed, but never a secret one', () => {
    const line = curlOf(request, { ...rules, allowHeaders: ['X-Tenant', 'Authorization'] });
    expect(line).toContain("-H 'x-tenant: acme'");
    expect(line).toContain("-H 'authorization: [redacted]'");
  });

  it('shows only the literals of a secret route that the client has asked for by another path', () => {
    const reset = new Route('GET', '/reset/:token', null, () => {});
    const given = { ...request, originalUrl: '/en/reset/Ab3xY9', url: '/reset/Ab3xY9' };
    const state = new RequestState(given as never, null, 0, { findRoute: () => reset } as never);
    expect(createReplay(state, rules, secrets, address)).toContain(
      "'http://10.0.0.7:3000/[redacted]/reset/[redacted]'",
    );
  });

  it('redacts a parameter inside an allowed header', () => {
    const headers = { host: 'h', accept: 'text/html; token=hunter2' };
    expect(curlOf({ ...request, headers }, rules)).toContain("-H 'accept: [redacted]'");
  });

  it('leaves the body out unless it is asked for', () => {
    expect(curlOf(post, rules)).toBe(
      "curl -X 'POST' --globoff 'http://10.0.0.7:3000/reports/7?year=2024' -H 'content-type: application/json'",
    );
  });

  it('repeats a JSON body without its secrets, quoted for a shell', () => {
    expect(curlOf(post, { ...rules, maxBodyBytes: 1_000 })).toContain(
      String.raw`--data-raw '{"name":"O'\''Hara","password":"[redacted]"}'`,
    );
  });

  it.each(['application/x-www-form-urlencoded', 'Application/X-WWW-Form-URLencoded'])('repeats a form: %s', (type) => {
    const headers = { ...post.headers, 'content-type': type };
    expect(curlOf({ ...post, headers }, { ...rules, maxBodyBytes: 1_000 })).toContain(
      "--data-raw 'name=O'\\''Hara&password=[redacted]'",
    );
  });

  it.each([
    ['too long', { 'content-length': '5000', 'content-type': 'application/json' }],
    ['neither JSON nor a form', { 'content-length': '10', 'content-type': 'application/octet-stream' }],
    ['compressed', { 'content-length': '10', 'content-type': 'application/json', 'content-encoding': 'gzip' }],
  ])('leaves out a body that is %s', (_name, headers) => {
    expect(curlOf({ ...post, headers }, { ...rules, maxBodyBytes: 1_000 })).not.toContain('--data-raw');
  });

  describe('of a body whose length no header tells', () => {
    const headers = { host: 'api.test', 'content-type': 'application/json', 'transfer-encoding': 'chunked' };
    const withBody = (body: unknown, over = {}) =>
      curlOf({ ...post, headers: { ...headers, ...over }, body }, { ...rules, maxBodyBytes: 50 });

    it('repeats it without its secrets, an empty one too', () => {
      expect(withBody({ name: 'Ada', password: 'hunter2' })).toContain(
        `--data-raw '{"name":"Ada","password":"[redacted]"}'`,
      );
      expect(withBody({})).toContain(`--data-raw '{}'`);
    });

    it('takes the empty one that a parser makes of none for none', () => {
      expect(withBody({}, { 'transfer-encoding': undefined })).not.toContain('--data-raw');
    });

    it.each<[string, unknown]>([
      ['a long text', { text: 'x'.repeat(60) }],
      ['a long name', { ['x'.repeat(60)]: 1 }],
      ['many items', Array.from({ length: 60 }, () => null)],
      ['bytes more than characters', { text: 'é'.repeat(25) }],
    ])('leaves out one that is too long: %s', (_name, body) => {
      expect(withBody(body)).not.toContain('--data-raw');
    });
  });

  describe('goes to the server itself, whatever host the client has named', () => {
    const headers = { host: 'evil.example' };
    const curlFrom = (socket: object | undefined, allowHeaders: string[] = []) =>
      curlOf({ ...request, headers, socket }, { ...rules, allowHeaders });
    it.each([
      [{ localAddress: '127.0.0.1', localPort: 8080 }, '127.0.0.1:8080'],
      [{ localAddress: '::ffff:10.1.2.3', localPort: 80 }, '10.1.2.3:80'],
      [{ localAddress: '::1', localPort: 80 }, '[::1]:80'],
      // Of a Unix socket, and one that is gone.
      [{}, address],
      [undefined, address],
    ])('%j', (socket, expected) => {
      expect(curlFrom(socket)).toBe(`curl --globoff 'http://${expected}/reports/7?year=2024'`);
    });

    it('names it in a header where that is allowed', () => {
      expect(curlFrom(undefined, ['Host'])).toBe(
        `curl --globoff 'http://${address}/reports/7?year=2024' -H 'host: evil.example'`,
      );
    });

    it.each([
      ['0.0.0.0', 'localhost:80'],
      ['::', 'localhost:80'],
      ['10.0.0.7', '10.0.0.7:80'],
    ])('a server that listens on %s has the address %s', (given, expected) => {
      expect(formatAddress(given, 80)).toBe(expected);
      expect(formatAddress(undefined, undefined)).toBeNull();
    });
  });

  it('has no backslash in its URL', () => {
    expect(curlOf({ ...request, url: '/x\\' }, rules)).toContain(`'http://${address}/x%5C'`);
  });

  it('closes the quote around each backslash: fish reads one inside quotes, other shells do not', () => {
    expect(quote(`a\\' b`)).toBe(String.raw`'a'"\\"''\'' b'`);
  });

  const shells = ['/bin/sh', '/bin/bash', '/usr/bin/zsh', '/usr/bin/fish', '/usr/bin/dash'].filter(existsSync);
  it.each(shells)('is one word for %s, whatever the text', (shell) => {
    const hostile = ['\\', "'", "\\'", "'\\", 'a;touch x;true \\', '$(id)`id`!x', "\\\\'\\", '%5C" "', '\n\ttext'];
    for (const text of hostile) {
      expect(execFileSync(shell, ['-c', `printf %s ${quote(text)}`], { encoding: 'utf8' })).toBe(text);
    }
  });

  it('is one word for a shell, whatever the text', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }).filter((text) => !text.includes('\0')),
        (text) => {
          expect(execFileSync('/bin/sh', ['-c', `printf %s ${quote(text)}`], { encoding: 'utf8' })).toBe(text);
        },
      ),
      { numRuns: 25 },
    );
  });
});

describe('curl line of an HTTP/2 request that is answered', () => {
  it.each([
    {
      name: 'with TLS',
      protocol: 'https',
      flags: '',
      create: () => createSecureServer({ key: KEY, cert: CERTIFICATE }),
    },
    { name: 'without TLS', protocol: 'http', flags: ' --http2-prior-knowledge', create: () => createServer() },
  ])('$name asks in the same way', async ({ protocol, flags, create }) => {
    const server = create().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const session = connect(`${protocol}://${host}`, { rejectUnauthorized: false });
    session.request({ ':path': '/reports' }).resume();
    const [asked, response] = (await once(server, 'request')) as unknown as [IncomingMessage, ServerResponse];
    response.end('x');
    await once(response, 'close');
    const state = new RequestState(asked, response, 0, { findRoute: () => null } as never);
    expect(createReplay(state, rules, secrets, host)).toBe(`curl${flags} --globoff '${protocol}://${host}/reports'`);
    session.close();
    server.close();
  });
});
