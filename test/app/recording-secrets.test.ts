import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Controller, Get, Param } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import express from 'express';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { record } from '../../src/entries/record.js';
import { PerfService } from '../../src/index.js';
import { adapterOf, either } from '../fixtures/app.js';
import {
  buildApp,
  closeApps,
  closeServer,
  listeningApp,
  ownServer,
  settled,
  type BuiltApp,
} from '../fixtures/build-app.js';
import { call } from '../fixtures/http-client.js';
import { linesOf } from '../fixtures/recordings.js';

/** Looks like a word: its name alone makes it a secret. */
const TOKEN = 'Ab3xY9';

@Controller('reset')
class ResetController {
  @Get(':token')
  reset(@Param('token') token: string) {
    return { length: token.length };
  }
}

@Controller('people')
class PeopleController {
  @Get(':name/orders')
  orders(@Param('name') name: string) {
    return { length: name.length };
  }
}

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'perf-paths-'));
});
afterEach(async () => {
  await closeApps();
  rmSync(directory, { recursive: true });
});

const options = () => ({
  perf: { eventLoop: false, sinks: [], extensions: [record({ directory })] },
  metadata: { controllers: [ResetController] },
});

/** Records one request. */
async function recorded(built: BuiltApp, url: string): Promise<{ url: string; status: number; all: string }> {
  const { recording } = built.app.get(PerfService);
  recording.start({ forMs: 60_000 });
  const { status } = await call(url);
  await settled(built);
  const lines = linesOf((await recording.stop()).file);
  expect(lines.map((line) => line.status)).toEqual([status]);
  return { url: lines[0]!.url, status, all: JSON.stringify(lines) };
}

const fastify = (given: object = {}): AbstractHttpAdapter => {
  const adapter: unknown = new FastifyAdapter(given);
  return adapter as AbstractHttpAdapter;
};
const stripLocale = (url: string | undefined): string => (url ?? '').replace(/^\/en(?=\/)/, '');

describe('a secret in a path is in no recording', () => {
  it.each<[string, () => AbstractHttpAdapter, path: string, status: number, expected: string]>([
    [
      'Fastify: rewriteUrl',
      () => fastify({ rewriteUrl: ({ url }: IncomingMessage) => stripLocale(url) }),
      '/en/reset/',
      200,
      '/[redacted]/reset/[redacted]',
    ],
    [
      'Fastify: ignoreDuplicateSlashes',
      () => fastify({ routerOptions: { ignoreDuplicateSlashes: true } }),
      '//reset/',
      200,
      '//reset/[redacted]',
    ],
    ['Fastify: other case', () => fastify(), '/RESET/', 404, '/[redacted]/[redacted]'],
    ['Fastify: a slash too many', () => fastify(), '/reset//', 404, '/reset//[redacted]'],
    ['Fastify: an encoded slash', () => fastify(), '/reset%2F', 404, '/[redacted]'],
    ['Express: a slash too many', () => new ExpressAdapter(), '/reset//', 404, '/reset//[redacted]'],
    ['Express: an encoded slash', () => new ExpressAdapter(), '/reset%2F', 404, '/[redacted]'],
    ['Express: other case', () => new ExpressAdapter(), '/RESET/', 200, '/RESET/[redacted]'],
  ])('%s', async (_what, adapter, path, status, expected) => {
    const built = await listeningApp(adapter(), options());
    expect(await recorded(built, `${built.url}${path}${TOKEN}`)).toMatchObject({ status, url: expected });
  });

  it('Fastify: a slash at the end, which no route matches', async () => {
    const built = await listeningApp(fastify(), options());
    const { status, url } = await recorded(built, `${built.url}/reset/${TOKEN}/`);
    expect([status, url]).toEqual([404, '/reset/[redacted]/']);
  });

  it('Express: middleware that takes a locale off the URL', async () => {
    const instance = express();
    instance.use((request, _response, next) => {
      request.url = stripLocale(request.url);
      next();
    });
    const built = await listeningApp(new ExpressAdapter(instance), options());
    const { status, url } = await recorded(built, `${built.url}/en/reset/${TOKEN}`);
    expect([status, url]).toEqual([200, '/[redacted]/reset/[redacted]']);
  });

  it('Express: an application below a path of another one', async () => {
    const inner = express();
    const built = await buildApp(new ExpressAdapter(inner), options());
    const outer = express().use(
      '/shop',
      inner as unknown as (request: IncomingMessage, response: ServerResponse) => void,
    );
    const { server, url } = await ownServer(outer);
    const told = await recorded(built, `${url}/shop/reset/${TOKEN}`);
    expect([told.status, told.url]).toEqual([200, '/[redacted]/reset/[redacted]']);
    expect(told.all).not.toContain(TOKEN);
    await closeServer(server);
  });
});

describe.each(either('fastify'))('in a recording on %s', (adapter) => {
  function start(allowQuery?: string[]) {
    const perf = {
      eventLoop: false,
      sinks: [],
      extensions: [record({ directory, ...(allowQuery && { allowQuery }) })],
    };
    const controllers = [ResetController, PeopleController];
    return listeningApp(adapterOf(adapter), { perf, metadata: { controllers } });
  }

  /** The recorded URL of one request. */
  async function recordedUrl(
    built: Awaited<ReturnType<typeof start>>,
    query: string,
    path = '/nowhere',
  ): Promise<string> {
    const { recording } = built.app.get(PerfService);
    recording.start({ forMs: 60_000 });
    await call(`${built.url}${path}?${query}`);
    await settled(built);
    const [line] = linesOf((await recording.stop()).file);
    expect(line!.redacted.includes('url')).toBe(line!.url.includes('[redacted]'));
    return line!.url;
  }

  it('are numbers, truth values, dates and times of a query, and no other value', async () => {
    const built = await start();
    const kept = 'page=2&price=-1.50&open=true&from=2026-11-29&at=2026-11-29T10:00:00.5Z&all&empty=&ids%5B%5D=7';
    expect(await recordedUrl(built, kept)).toBe(`/nowhere?${kept}`);
    expect(await recordedUrl(built, 'ada.lovelace-1815')).toBe('/nowhere?[redacted]');
    expect(
      await recordedUrl(
        built,
        'name=Ada&mail=ada%40example.com&phone=491701234567&sort=asc&Ada+Lovelace=1&page=2&x=1;',
      ),
    ).toBe('/nowhere?name=[redacted]&mail=[redacted]&phone=[redacted]&sort=[redacted]&[redacted]&page=2&x=[redacted]');
  });

  it("are numbers and ids of a route's parameters, and other values where they are named", async () => {
    const built = await start();
    const url = (name: string, app = built) => recordedUrl(app, 'page=2', `/people/${name}/orders`);
    for (const id of ['42', '6f9619ff-8b86-4011-b42d-00c04fc964ff', '507f1f77bcf86cd799439011'])
      expect(await url(id)).toBe(`/people/${id}/orders?page=2`);
    for (const name of ['ada%40example.com', 'Ada%20Lovelace', 'ada'])
      expect(await url(name)).toBe('/people/[redacted]/orders?page=2');
    expect(await url('ada', await start(['name']))).toBe('/people/ada/orders?page=2');
  });

  it('are the values of parameters that are named, ids of databases among them, without those that look like secrets', async () => {
    const kept = 'from=507f1f77bcf86cd799439011&upload=01HV3Q7Z8XJ4K5M6N7P8Q9R0ST&name=order-2024-01-15-summary';
    const secret =
      'security_answer=Rex&senha=Rex&%E5%AF%86%E7%A0%81=Rex&q=V1StGXR8_Z5jdHi6B-myT&pay=visa4111111111111111';
    const names = ['from', 'upload', 'name', 'security_answer', 'senha', '%E5%AF%86%E7%A0%81', 'q', 'pay'];
    expect(await recordedUrl(await start([...names, 'otp']), `${kept}&${secret}&otp=123456`)).toBe(
      `/nowhere?${kept}&security_answer=[redacted]&senha=[redacted]&%E5%AF%86%E7%A0%81=[redacted]&q=[redacted]&pay=[redacted]&otp=[redacted]`,
    );
  });
});
