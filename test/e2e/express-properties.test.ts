import { createServer, IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Body, Controller, Get, Post, Req, Res } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { afterEach, describe, expect, it } from 'vitest';
import { ExpressProperties } from '../../src/http/express/properties.js';
import { PerfModule } from '../../src/index.js';

interface Seen {
  request: IncomingMessage;
  response: ServerResponse;
  properties: string[];
}
let seen: Seen[] = [];
const plain = { request: IncomingMessage.prototype, response: ServerResponse.prototype };
const names = (object: object): string[] => Object.getOwnPropertyNames(object);

@Controller('seen')
class SeenController {
  @Get(':id') get(@Req() request: IncomingMessage, @Res() response: ServerResponse): void {
    seen.push({ request, response, properties: [...names(request), ...names(response)].toSorted() });
    response.end();
  }
  @Post() post(@Req() request: IncomingMessage, @Res() response: ServerResponse, @Body() _body: unknown): void {
    this.get(request, response);
  }
}

interface Express {
  readonly request: { body?: unknown };
  readonly response: { locals?: unknown };
  use(middleware: (request: IncomingMessage, response: ServerResponse, next: () => void) => void): void;
}
let close = async (): Promise<void> => {};
async function start(perf: boolean, bodyParser = true, main: (express: Express) => void = () => {}): Promise<string> {
  const root = {
    module: class Root {},
    imports: perf ? [PerfModule.forRoot({ sinks: [] })] : [],
    controllers: [SeenController],
  };
  const app = await NestFactory.create(root, new ExpressAdapter(), { logger: false, bodyParser });
  main(app.getHttpAdapter().getInstance() as Express);
  await app.listen(0, '127.0.0.1');
  close = () => app.close();
  return `http://127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}/seen`;
}
const get = async (url: string): Promise<unknown> => (await fetch(`${url}/1`)).text();
const post = async (url: string): Promise<unknown> =>
  (await fetch(url, { method: 'POST', body: '{"a":1}', headers: { 'content-type': 'application/json' } })).text();

describe('the properties that Express sets on a request and its response', () => {
  afterEach(async () => {
    await close();
    close = async () => {};
    seen = [];
  });

  it('leave `body` to those who read one: a handler before the parsers asks whether somebody has', async () => {
    const bodies: string[] = [];
    const url = await start(true, true, (express) =>
      express.use((request, response, next) => {
        if (request.method === 'GET') return next();
        if ('body' in request) return void response.end('parsed by somebody else');
        request.setEncoding('utf8').on('data', (text: string) => bodies.push(text));
        request.on('end', () => response.end());
      }),
    );
    for (let i = 0; i < 3; i++) {
      await get(url);
      await post(url);
    }
    expect(bodies).toEqual(['{"a":1}', '{"a":1}', '{"a":1}']);
  });

  it("leave a default on Express's response in sight", async () => {
    const locals = { title: 'for every response' };
    const url = await start(true, true, ({ response }) => (response.locals = locals));
    await get(url);
    expect((seen[0]!.response as { locals?: unknown }).locals).toBe(locals);
  });

  it("leave a default on Express's request in sight", async () => {
    const url = await start(true, true, ({ request }) => (request.body = { none: true }));
    for (const send of [get, post, get]) await send(url);
    expect(seen.map(({ request }) => (request as { body?: unknown }).body)).toEqual([
      { none: true },
      { a: 1 },
      { none: true },
    ]);
  });

  it.each([
    ['the body parsers of Nest', true],
    ['no body parser', false],
  ])('are those that a handler finds without this library, with %s', async (_what, bodyParser) => {
    const found: string[][] = [];
    for (const perf of [false, true]) {
      const url = await start(perf, bodyParser);
      for (let i = 0; i < 40; i++) await get(url);
      found.push(seen.at(-1)!.properties.filter((name) => !/^status|^_eventsCount$/.test(name)));
      expect(names(seen.at(-1)!.request).includes('body')).toBe(bodyParser);
      seen = [];
      await close();
    }
    expect(found[1]).toEqual(found[0]);
  });

  it('keep the values they have', async () => {
    const properties = new ExpressProperties(plain);
    const server: Server = createServer((request, response) => {
      Object.assign(request, { originalUrl: '/kept' });
      response.statusCode = 418;
      properties.reserve(request, response);
      response.end((request as { originalUrl?: string }).originalUrl);
    });
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    close = () => new Promise<void>((resolve) => void server.close(() => resolve()));
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    expect([response.status, await response.text()]).toEqual([418, '/kept']);
  });

  it('are not set on what is no plain request of Node, whose accessors might throw', () => {
    const response = {
      get statusMessage(): string {
        throw new Error('not for HTTP/2');
      },
    };
    const request = {};
    new ExpressProperties(plain).reserve(request as IncomingMessage, response as ServerResponse);
    expect(names(request)).toEqual([]);
  });
});
