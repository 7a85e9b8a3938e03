// Packages whose current major asks for Node 22: loaded there only.
import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { Controller, Get } from '@nestjs/common';
import { ClsModule, ClsService } from 'nestjs-cls';
import { Deferrer } from 'nestjs-perf';
import { Logger, LoggerModule } from 'nestjs-pino';
import { blamesTheBlocker } from './server.js';
import { until } from './check.js';
import type { Tool } from './tool.js';

/** Of all applications in this process: nestjs-pino keeps one root logger for them, with the first one's stream. */
const lines: { msg?: string; level?: number }[] = [];
const stream = new Writable({
  write: (chunk: Buffer, _encoding, done) => {
    for (const line of chunk.toString().trim().split('\n')) lines.push(JSON.parse(line) as { msg?: string });
    done();
  },
});

const pino: Tool = {
  name: 'nestjs-pino',
  setUp: async () => {
    lines.length = 0;
    return {
      options: {
        metadata: {
          // Its default routes match nothing on Nest 12 with Fastify (nestjs-pino 5.2.1, without this library too).
          imports: [LoggerModule.forRoot({ pinoHttp: [{ level: 'info' }, stream], forRoutes: ['*splat'] })],
        },
        prepare: (app) => app.useLogger(app.get(Logger)),
      },
      works: async (server) => {
        assert.ok(
          lines.some(({ msg }) => msg === 'request completed'),
          'it has logged no request',
        );
        // This library's own lines go through it as well.
        await blamesTheBlocker(server);
        await until('the block as a warning of pino', () =>
          lines.some(({ level, msg = '' }) => level === 40 && /^GET \/block .*blocked the event loop/.test(msg)),
        );
      },
    };
  },
};

@Controller('who')
class WhoController {
  static deferred: string[] = [];
  constructor(
    private readonly cls: ClsService,
    private readonly deferrer: Deferrer,
  ) {}

  @Get()
  async answer() {
    const id = this.cls.getId();
    await new Promise((resolve) => setTimeout(resolve, 5));
    this.deferrer.defer(() => WhoController.deferred.push(this.cls.getId()));
    return { id, after: this.cls.getId() };
  }
}

const cls: Tool = {
  name: 'nestjs-cls',
  setUp: async () => ({
    options: {
      metadata: {
        imports: [ClsModule.forRoot({ middleware: { mount: true, generateId: true } })],
        controllers: [WhoController],
      },
    },
    works: async ({ url, requests }) => {
      WhoController.deferred = [];
      const answers = await Promise.all(
        [1, 2, 3].map(async () => (await (await fetch(`${url}/who`)).json()) as { id: string; after: string }),
      );
      for (const { id, after } of answers) assert.equal(id, after);
      assert.equal(new Set(answers.map(({ id }) => id)).size, 3);
      await requests();
      // Deferred work still runs in its request's store.
      assert.deepEqual([...WhoController.deferred].sort(), answers.map(({ id }) => id).sort());
    },
  }),
};

export const tools: readonly Tool[] = [pino, cls];
