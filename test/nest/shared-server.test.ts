import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import {
  Body,
  Controller,
  Get,
  type INestApplicationContext,
  type INestApplication,
  Post,
  type WebSocketAdapter,
} from '@nestjs/common';
import { WebSocketGateway } from '@nestjs/websockets';
import { afterEach, describe, expect, it } from 'vitest';
import { type Adapter, adapterOf, byNest } from '../fixtures/app.js';
import { closeApps, listeningApp, recordsOf } from '../fixtures/build-app.js';
import { call } from '../fixtures/http-client.js';
import { Lines } from '../fixtures/lines.js';
import { loggerSink } from '../../src/index.js';

const SLOW_MS = 20;
const POLL_MS = 60;

/** Answers long polls below a path, as engine.io does: in the place of the listeners that the server has, which get the others. */
function attachPolling(server: Server): void {
  const listeners = server.listeners('request').slice() as ((...given: unknown[]) => void)[];
  server.removeAllListeners('request');
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (request.url!.startsWith('/socket.io/')) void delay(POLL_MS).then(() => response.end('poll'));
    else for (const listener of listeners) listener.call(server, request, response);
  });
}

/** Nest binds gateways before it configures modules, as with `@nestjs/platform-socket.io`. */
class PollingAdapter implements WebSocketAdapter {
  constructor(private readonly app: INestApplicationContext) {}
  create(): object {
    attachPolling((this.app as INestApplication).getHttpServer() as Server);
    return { on: () => {} };
  }
  bindClientConnect(): void {}
  bindMessageHandlers(): void {}
  close(): void {}
  dispose(): void {}
}

@WebSocketGateway()
class TicksGateway {}

@Controller('items')
class ItemsController {
  @Get('slow')
  async slow() {
    await delay(POLL_MS);
    return [];
  }
  @Post()
  create(@Body() body: object) {
    return body;
  }
}

afterEach(closeApps);

async function boot(adapter: Adapter, attach: 'by a gateway' | 'in main.ts' | 'later' | 'never') {
  const lines = new Lines();
  const built = await listeningApp(adapterOf(adapter), {
    perf: { latency: { slowMs: SLOW_MS }, sinks: [loggerSink()], eventLoop: false },
    metadata: { controllers: [ItemsController], providers: attach === 'by a gateway' ? [TicksGateway] : [] },
    nest: { logger: lines },
    beforeInit: (app) => {
      app.use(
        '/late',
        (_request: unknown, response: ServerResponse) => void delay(POLL_MS).then(() => response.end('')),
      );
      app.use('/missing', (_request: unknown, _response: unknown, next: () => void) => void setTimeout(next, POLL_MS));
      if (attach === 'by a gateway') app.useWebSocketAdapter(new PollingAdapter(app));
      if (attach === 'in main.ts') attachPolling(app.getHttpServer() as Server);
    },
  });
  if (attach === 'later') attachPolling(built.app.getHttpServer() as Server);
  return { ...built, lines, slow: () => lines.all.filter((line) => / took \d+ ms/.test(line)) };
}

describe.each(byNest('fastify'))('a server on %s', (adapter) => {
  /** Express takes it for a path. */
  const badUrl = adapter === 'fastify' ? 400 : 404;

  it.each(['by a gateway', 'in main.ts', 'later'] as const)(
    'that another listener polls on, attached %s: no poll is a slow request',
    async (attach) => {
      const { url, slow, ...built } = await boot(adapter, attach);
      expect((await call(`${url}/socket.io/?transport=polling`)).text).toBe('poll');
      expect((await call(`${url}/items/slow`)).text).toBe('[]');
      const records = await recordsOf(built, 1);
      await built.app.close();
      expect(records.filter(({ slow }) => slow === true).map(({ route }) => route)).toEqual(['/items/slow']);
      expect(slow()).toEqual([expect.stringMatching(/GET \/items\/slow/)]);
    },
  );

  it.each(['by a gateway', 'never'] as const)(
    'where another one polls %s: answers without a route are recorded once, and slow ones are told',
    async (attach) => {
      const { url, slow, ...built } = await boot(adapter, attach);
      const json = { 'content-type': 'application/json' };
      for (const path of ['/late', '/missing', '/nowhere', '/%']) await call(`${url}${path}`);
      await call(`${url}/items`, { method: 'POST', headers: json, body: '{"broken' });
      const records = await recordsOf(built, 5);
      await built.app.close();
      expect(records.map(({ status }) => status)).toEqual([200, 404, 404, badUrl, 400]);
      expect(records.slice(0, 2).map((record) => record.slow)).toEqual([true, true]);
      expect(slow()).toContainEqual(expect.stringMatching(/GET \(no route\)/));
    },
  );
});
