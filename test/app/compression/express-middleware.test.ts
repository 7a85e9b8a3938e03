import { ServerResponse, type IncomingMessage } from 'node:http';
import type { INestApplication } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { adapterOf, startApp, type TestApp } from '../../fixtures/app.js';
import { CompressionController, rows } from '../../fixtures/compression.controller.js';
import { callAccepting } from '../../fixtures/http-client.js';

type Middleware = (request: IncomingMessage, response: ServerResponse, next: () => void) => void;
type Settings = { set: (setting: string, value: unknown) => void };

let test: TestApp;
const start = async (...middleware: Middleware[]): Promise<void> => {
  test = await startApp('express', {
    metadata: { controllers: [CompressionController] },
    beforeInit: (app: INestApplication) => middleware.forEach((each) => app.use(each)),
  });
};
const feed = (): ReturnType<typeof callAccepting> => callAccepting(`${test.url}/c/json/60000`, 'br');

describe('the `etag` setting of Express', () => {
  afterEach(() => test.close());

  it.each([
    [false, false],
    [true, true],
    ['weak', true],
    ['strong', true],
    [() => '"own"', true],
  ])('`%s`: a compressed answer has a tag: %s', async (setting, hasTag) => {
    test = await startApp('express', {
      metadata: { controllers: [CompressionController] },
      beforeInit: (app) => (app.getHttpAdapter().getInstance() as Settings).set('etag', setting),
    });
    const { headers } = await feed();
    expect(headers['content-encoding']).toBe('br');
    expect(headers.etag !== undefined).toBe(hasTag);
  });
});

describe("middleware of main.ts that replaces a response's functions", () => {
  afterEach(() => test.close());

  it.each(['writeHead', 'write', 'end'] as const)(
    'sees the plain answer once where it has replaced `%s`',
    async (name) => {
      const seen: string[] = [];
      await start((_request, response, next) => {
        const replaced = response[name] as (...given: unknown[]) => unknown;
        Object.assign(response, {
          [name](...given: unknown[]) {
            seen.push(`${name}: ${String(response.getHeader('content-encoding'))}`);
            return replaced.apply(response, given);
          },
        });
        next();
      });
      const response = await feed();
      expect(response.text).toBe(JSON.stringify(rows(60_000)));
      expect(response.headers['content-encoding']).toBe('br');
      expect(seen).toEqual(name === 'write' ? [] : [`${name}: undefined`]);
    },
  );

  it('does not outrank the head that is given, where it sets headers within its own `writeHead`', async () => {
    await start((_request, response, next) => {
      const { writeHead } = response;
      Object.assign(response, {
        writeHead(...given: Parameters<typeof writeHead>) {
          response.setHeader('cache-control', 'max-age=60');
          response.setHeader('x-cached', 'yes');
          return writeHead.apply(response, given);
        },
      });
      next();
    });
    const { headers } = await callAccepting(`${test.url}/c/events`, 'br');
    expect(headers['cache-control']).toContain('no-store');
    expect(headers['x-cached']).toBe('yes');
  });

  it('may answer by itself, and is encoded', async () => {
    await start((_request, response) => {
      response.writeHead(201, { 'content-type': 'text/plain' });
      response.write('x'.repeat(5_000));
      response.end('y');
    });
    const response = await feed();
    expect(response.status).toBe(201);
    expect(response.headers['content-encoding']).toBe('br');
    expect(response.text).toBe(`${'x'.repeat(5_000)}y`);
  });

  it('keeps its own `setHeader` after a body was encoded on the pool', async () => {
    const own: boolean[] = [];
    await start((_request, response, next) => {
      const setHeader: ServerResponse['setHeader'] = (name, value) =>
        ServerResponse.prototype.setHeader.call(response, name, value);
      response.setHeader = setHeader;
      response.on('finish', () => own.push(response.setHeader === setHeader));
      next();
    });
    expect((await feed()).headers['content-encoding']).toBe('br');
    await expect.poll(() => own).toEqual([true]);
  });

  it('leaves the functions of Node and of Express alone', async () => {
    const functionsOf = ({ writeHead, write, end }: ServerResponse) => [writeHead, write, end];
    const before = functionsOf(ServerResponse.prototype);
    await start();
    expect(functionsOf(ServerResponse.prototype)).toEqual(before);
    const another = adapterOf('express').getInstance() as { response: ServerResponse };
    expect(functionsOf(another.response)).toEqual(before);
    const own = test.app.getHttpAdapter().getInstance() as { response: ServerResponse };
    expect(functionsOf(own.response)).toEqual(before);
  });
});
