// What every supported Node can run beside this library.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { Controller, Get, UseGuards } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import fastifyHelmet from '@fastify/helmet';
import { createObserveModule } from '@nestjs/observe';
import { DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';
import helmet from 'helmet';
import { until } from './check.js';
import type { Tool } from './tool.js';

const swagger: Tool = {
  name: '@nestjs/swagger',
  setUp: async () => ({
    options: {
      prepare: (app) => {
        SwaggerModule.setup('docs', app, () =>
          SwaggerModule.createDocument(app, new DocumentBuilder().setTitle('shop').build()),
        );
      },
    },
    works: async ({ url }) => {
      const page = await fetch(`${url}/docs`);
      assert.equal(page.status, 200);
      assert.match(await page.text(), /swagger-ui/);
      const { paths } = (await (await fetch(`${url}/docs-json`)).json()) as { paths: object };
      for (const path of ['/users/{id}', '/block', '/feed']) assert.ok(path in paths, `${path} is not documented`);
      assert.ok(!Object.keys(paths).some((path) => path.includes('perf')), 'documents what is not the application’s');
    },
  }),
};

@Controller('limited')
class LimitedController {
  @Get()
  @UseGuards(ThrottlerGuard)
  answer() {
    return 'ok';
  }
}

const throttler: Tool = {
  name: '@nestjs/throttler',
  setUp: async () => ({
    options: {
      metadata: {
        imports: [ThrottlerModule.forRoot([{ ttl: 60_000, limit: 2 }])],
        controllers: [LimitedController],
      },
    },
    works: async ({ url, requests }) => {
      const before = (await requests()).length;
      const statuses = [];
      for (let n = 0; n < 3; n++) statuses.push((await fetch(`${url}/limited`)).status);
      assert.deepEqual(statuses, [200, 200, 429]);
      const records = (await requests()).slice(before);
      assert.deepEqual(
        records.map(({ route, status, handler }) => [route, status, handler]),
        [200, 200, 429].map((status) => ['/limited', status, 'LimitedController.answer']),
      );
    },
  }),
};

const helmets: Tool = {
  name: 'helmet',
  setUp: async (adapter) => ({
    options: {
      prepare: (app) =>
        adapter === 'express'
          ? app.use(helmet())
          : (app as NestFastifyApplication).register(
              fastifyHelmet as Parameters<NestFastifyApplication['register']>[0],
            ),
    },
    works: async ({ url }) => {
      const { headers } = await fetch(`${url}/feed`);
      assert.equal(headers.get('x-content-type-options'), 'nosniff');
      assert.match(headers.get('content-security-policy') ?? '', /default-src/);
    },
  }),
};

const cors: Tool = {
  name: 'cors',
  setUp: async () => ({
    options: { prepare: (app) => app.enableCors({ origin: 'https://shop.test' }) },
    works: async ({ url, requests }) => {
      const before = (await requests()).length;
      const headers = { origin: 'https://shop.test', 'access-control-request-method': 'GET' };
      const preflight = await fetch(`${url}/users/7`, { method: 'OPTIONS', headers });
      assert.equal(preflight.status, 204);
      assert.equal(preflight.headers.get('access-control-allow-origin'), 'https://shop.test');
      const records = (await requests()).slice(before);
      assert.deepEqual(
        records.map(({ method, status, outcome }) => [method, status, outcome]),
        [['OPTIONS', 204, 'completed']],
      );
    },
  }),
};

/** Its service stands on loopback here; what arrives there is what it would have shipped. */
const observe: Tool = {
  name: '@nestjs/observe',
  setUp: async () => {
    const arrived: string[] = [];
    const collector = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const body = Buffer.concat(chunks);
        arrived.push(body[0] === 0x1f ? gunzipSync(body).toString() : body.toString());
        response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
      });
    });
    await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
    const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
    const { ObserveModule, ObserveInstrument } = createObserveModule();
    const observed = ObserveModule.forRoot({
      appKey: 'key',
      appSecret: 'secret',
      serviceId: 'shop',
      endpoint,
      flushInterval: 1_000,
    });
    return {
      options: { metadata: { imports: [observed] }, nest: { instrument: ObserveInstrument } },
      works: () =>
        until('telemetry of GET /users/7 at its service', () =>
          arrived.some((body) => body.includes('findOne') || body.includes('/users/')),
        ),
      end: () =>
        new Promise((resolve) => {
          collector.close(() => resolve());
          collector.closeAllConnections();
        }),
    };
  },
};

export const tools: readonly Tool[] = [swagger, throttler, helmets, cors, observe];
