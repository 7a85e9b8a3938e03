import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  Controller,
  Get,
  Header,
  Headers,
  HttpException,
  type INestApplication,
  Put,
  Res,
  UnprocessableEntityException,
} from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { PerfService, SharedResponse } from '../../../src/index.js';
import { adapters, startApp, type Adapter, type TestApp } from '../../fixtures/app.js';
import { rows } from '../../fixtures/compression.controller.js';
import { call, callAccepting } from '../../fixtures/http-client.js';
import { PlainAdapter } from '../../fixtures/plain-adapter.js';
import { uncaughtDuring } from '../../fixtures/uncaught.js';

type Middleware = (request: IncomingMessage, response: ServerResponse, next: () => void) => void;
type Answering = {
  header?: (name: string, value: string) => unknown;
  setHeader?: (name: string, value: string) => unknown;
};

const put = (reply: Answering, name: string, value: string): unknown =>
  reply.header === undefined ? reply.setHeader!(name, value) : reply.header(name, value);

let version = 7;
let ran = 0;
let seen: unknown[] = [];

@Controller('layers')
class LayersController {
  @Get('rows')
  @Header('content-type', 'application/json')
  rows(): string {
    return JSON.stringify(rows(40_000));
  }

  @Get('small')
  small(): unknown {
    return { id: 42 };
  }

  @Get('shared')
  @SharedResponse({ ttlMs: 60_000, forEveryone: true })
  shared(): unknown {
    ran += 1;
    return { ran, rows: rows(5_000) };
  }

  @Get('document')
  document(@Res({ passthrough: true }) reply: Answering): unknown {
    put(reply, 'etag', `"v${version}"`);
    return { version, rows: rows(5_000) };
  }

  @Put('document')
  write(@Headers('if-match') wanted: string, @Headers('if-none-match') known: string | undefined): unknown {
    seen.push(wanted, known);
    if (wanted !== `"v${version}"`) throw new HttpException('changed meanwhile', 412);
    version += 1;
    return { version };
  }
}

const kinds = [...adapters, 'plain'] as const;

describe.each(kinds)("an application's own layers on %s", (kind) => {
  let test: TestApp;
  const start = async (beforeInit: (app: INestApplication) => void = () => {}): Promise<void> => {
    ran = 0;
    seen = [];
    test = await startApp(kind as Adapter, {
      ...(kind === 'plain' ? { adapter: new PlainAdapter() } : {}),
      metadata: { controllers: [LayersController] },
      beforeInit,
    });
  };
  /** Before Nest's own. */
  const use = (app: INestApplication, middleware: Middleware): void => {
    if (kind !== 'fastify') return void app.use(middleware);
    (app.getHttpAdapter().getInstance() as FastifyInstance).addHook('onRequest', (request, reply, done) =>
      middleware(request.raw, reply.raw, done),
    );
  };
  afterEach(() => test.close());
  const get = (path: string, headers: Record<string, string> = {}, coding = 'br') =>
    callAccepting(`${test.url}/layers/${path}`, coding, { headers });

  it('read the plain body and head around `write` and `end`, as loggers of bodies do', async () => {
    await start((app) =>
      use(app, (_request, response, next) => {
        const { write, end } = response;
        const chunks: Buffer[] = [];
        const keep = (chunk: unknown): void => {
          if (typeof chunk === 'string' || chunk instanceof Uint8Array) chunks.push(Buffer.from(chunk as string));
        };
        response.write = function (this: ServerResponse, ...given: unknown[]): boolean {
          keep(given[0]);
          return write.apply(this, given as never);
        } as never;
        response.end = function (this: ServerResponse, ...given: unknown[]): ServerResponse {
          keep(given[0]);
          // One that cannot be parsed would end the process.
          const parsed = JSON.parse(Buffer.concat(chunks).toString()) as unknown;
          seen.push(parsed, this.getHeader('content-encoding'));
          return end.apply(this, given as never);
        } as never;
        next();
      }),
    );
    const fatal = await uncaughtDuring(async () => {
      for (const path of ['rows', 'small', 'shared', 'shared']) {
        const answer = await get(path);
        expect([answer.status, answer.headers['content-encoding']]).toEqual([200, path === 'small' ? undefined : 'br']);
        expect(seen).toEqual([JSON.parse(answer.text), undefined]);
        seen = [];
      }
    });
    expect([fatal.length, ran]).toEqual([0, 1]);
  });

  it('change a shared answer once, whatever they put around `end`', async () => {
    await start((app) =>
      use(app, (_request, response, next) => {
        const { end } = response;
        response.end = function (this: ServerResponse, ...given: unknown[]): ServerResponse {
          return end.apply(this, [`[${String(given[0])}]`] as never);
        } as never;
        next();
      }),
    );
    for (const coding of ['identity', 'identity', 'br', 'identity']) {
      const { text, headers, raw } = await get('shared', {}, coding);
      expect(JSON.parse(text)).toEqual([{ ran: 1, rows: rows(5_000) }]);
      if (headers['content-length'] !== undefined) expect(headers['content-length']).toBe(String(raw.byteLength));
    }
  });

  it('cache what each client can read, as apicache does', async () => {
    let cached: { status: number; headers: object; body: unknown } | null = null;
    await start((app) =>
      use(app, (_request, response, next) => {
        if (cached !== null) {
          response.writeHead(cached.status, { ...cached.headers });
          response.end(cached.body);
          return;
        }
        const { end, writeHead } = response;
        const entry = { status: 200, headers: {}, body: undefined as unknown };
        response.writeHead = function (this: ServerResponse, ...given: unknown[]) {
          entry.headers = { ...this.getHeaders(), ...(given.at(-1) as object) };
          return writeHead.apply(this, given as never);
        };
        response.end = function (this: ServerResponse, ...given: unknown[]) {
          entry.body = given[0];
          cached = entry;
          return end.apply(this, given as never);
        } as never;
        next();
      }),
    );
    for (const coding of ['br', 'gzip', 'identity', 'br']) {
      const answer = await get('rows', {}, coding);
      expect(answer.headers['content-encoding']).toBe(coding === 'identity' ? undefined : coding);
      expect(JSON.parse(answer.text)).toEqual(rows(40_000));
    }
  });

  it('get the last byte of a body later, as express-session sends it when it has stored the session', async () => {
    await start((app) =>
      use(app, (_request, response, next) => {
        const { write, end } = response;
        response.end = function (this: ServerResponse, ...given: unknown[]): ServerResponse {
          const body = Buffer.from(given[0] as string);
          if (!this.headersSent) this.setHeader('content-length', body.byteLength);
          write.call(this, body.subarray(0, -1), 'utf8');
          setTimeout(() => end.call(this, body.subarray(-1), 'utf8'), 5);
          return this;
        } as never;
        next();
      }),
    );
    const answer = await get('rows');
    expect(answer.headers).toMatchObject({ 'content-encoding': 'br', 'content-length': String(answer.raw.byteLength) });
    expect(JSON.parse(answer.text)).toEqual(rows(40_000));
    expect((await get('small')).text).toBe('{"id":42}');
  });

  it('name a version with a tag of their own, which the client gives back: optimistic locking', async () => {
    await start();
    for (const coding of ['br', 'gzip', 'identity']) {
      const answer = await get('document', {}, coding);
      const etag = String(answer.headers.etag);
      const known = `"v${version}"`;
      expect([etag === known, answer.headers['content-encoding']]).toEqual([
        coding === 'identity',
        coding === 'identity' ? undefined : coding,
      ]);
      const change = { method: 'PUT', headers: { 'if-match': etag } };
      expect((await call(`${test.url}/layers/document`, change)).status).toBe(200);
      expect((await call(`${test.url}/layers/document`, change)).status).toBe(412);
      expect(seen).toEqual([known, undefined, known, undefined]);
      seen = [];
    }
  });

  it('are asked nothing of the client where a small body is sent', async () => {
    let reads = 0;
    await start((app) =>
      use(app, (request, _response, next) => {
        const { headers } = request;
        const counted = { get: () => (reads++, headers), configurable: true };
        if (request.url === '/layers/small') Object.defineProperty(request, 'headers', counted);
        next();
      }),
    );
    const before = reads;
    expect((await get('small')).text).toBe('{"id":42}');
    if (kind === 'fastify') expect(reads).toBe(before);
    await get('rows');
    expect(test.app.get(PerfService).snapshot().compression).toMatchObject({ responses: 2, compressed: 1 });
  });
});

describe('onSend hooks on fastify', () => {
  let test: TestApp;
  type OnSend = Parameters<typeof FastifyLike.addHook>[1];
  const start = async (hook: OnSend): Promise<void> => {
    ran = 0;
    test = await startApp('fastify', {
      metadata: { controllers: [LayersController] },
      beforeInit: (app) => void (app.getHttpAdapter().getInstance() as typeof FastifyLike).addHook('onSend', hook),
    });
  };
  afterEach(() => test.close());
  const FastifyLike = null as unknown as {
    addHook(name: 'onSend', hook: (...given: any[]) => unknown): unknown;
  };

  it.each<[string, OnSend]>([
    [
      'throws',
      async () => {
        throw new UnprocessableEntityException('no');
      },
    ],
    ['rejects', () => Promise.reject(new UnprocessableEntityException('no'))],
    ['calls back with an error', (_request, _reply, _payload, done) => done(new UnprocessableEntityException('no'))],
  ])('one that %s is answered readably, without a label', async (_how, hook) => {
    let first = true;
    const once: OnSend =
      hook.length === 0
        ? async (_request: unknown, _reply: unknown, payload: unknown) => {
            if (!first) return payload;
            first = false;
            return (hook as () => unknown)();
          }
        : (request, reply, payload, done) => {
            if (!first) return void done(null, payload);
            first = false;
            return void hook(request, reply, payload, done);
          };
    await start(once);
    const answer = await callAccepting(`${test.url}/layers/rows`, 'br');
    expect([answer.status, answer.headers['content-encoding'], answer.headers.etag]).toEqual([
      422,
      undefined,
      undefined,
    ]);
    expect(JSON.parse(answer.text)).toMatchObject({ message: 'no' });
  });

  it('one that replaces the body is sent what it gives, once also where the answer is shared', async () => {
    await start((_request, _reply, payload, done) => done(null, `{"wrapped":${String(payload)}}`));
    const plain = JSON.parse((await callAccepting(`${test.url}/layers/rows`, 'br')).text) as object;
    expect(plain).toEqual({ wrapped: rows(40_000) });
    for (let i = 0; i < 3; i++) {
      const { text } = await callAccepting(`${test.url}/layers/shared`, 'gzip');
      expect(JSON.parse(text)).toEqual({ wrapped: { ran: 1, rows: rows(5_000) } });
    }
  });
});
