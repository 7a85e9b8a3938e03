import { createRequire } from 'node:module';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Controller, Get } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { PerfService } from '../../src/index.js';
import { adapterOf, startApp, type TestApp } from '../fixtures/app.js';
import { PlainAdapter } from '../fixtures/plain-adapter.js';

const platform = createRequire(createRequire(import.meta.url).resolve('@nestjs/platform-express'));
const { static: serveStatic } = platform('express') as { static: (directory: string) => unknown };

type Handle = (request: IncomingMessage, response: ServerResponse, next: () => void) => void;
const answer: Handle = (_request, response) => void response.end('ok');
const answerAt =
  (path: string): Handle =>
  (request, response, next) => {
    if (request.url === path) response.end('ok');
    else next();
  };

@Controller('users')
class UsersController {
  @Get(':id')
  get() {
    return {};
  }
}

const ADAPTERS = {
  express: {
    make: () => adapterOf('express'),
    registers(app: TestApp['app']) {
      app.getHttpAdapter().getInstance().get('/raw/:id', answer);
      app.use('/assets', serveStatic(new URL('../../docs', import.meta.url).pathname));
    },
    // docs/routes.md has these labels as its table.
    labels: {
      '/users/7': '/users/:id',
      '/raw/7': '/raw/:id',
      '/graphql': '/graphql',
      '/proxy': '',
      '/assets/README.md': '/assets',
      '/nowhere': '',
    },
  },
  fastify: {
    make: () => adapterOf('fastify'),
    registers(app: TestApp['app']) {
      const instance = app.getHttpAdapter().getInstance();
      instance.get('/raw/:id', () => 'ok');
      // As @fastify/static registers a prefix.
      instance.get('/assets/*', () => 'ok');
    },
    labels: {
      '/users/7': '/users/:id',
      '/raw/7': '/raw/:id',
      '/graphql': '',
      '/proxy': '',
      '/assets/README.md': '/assets/*',
      '/nowhere': '',
    },
  },
  other: {
    make: () => new PlainAdapter(),
    registers(app: TestApp['app']) {
      app.getHttpAdapter().get('/raw/:id', answer as never);
      app.getHttpAdapter().get('/assets/README.md', answer as never);
    },
    labels: {
      '/users/7': '/users/:id',
      '/raw/7': '',
      '/graphql': '',
      '/proxy': '',
      '/assets/README.md': '',
      '/nowhere': '',
    },
  },
} as const;

describe.each(Object.entries(ADAPTERS))(
  'labels of what Nest has not registered, on %s,',
  (_, { make, registers, labels }) => {
    let running: TestApp;
    afterEach(() => running.close());

    it('are those of the guide', async () => {
      const beforeInit = (app: TestApp['app']): void => {
        app.use('/graphql', answer);
        app.use(answerAt('/proxy'));
        registers(app);
      };
      running = await startApp('express', {
        adapter: make() as never,
        beforeInit,
        metadata: { controllers: [UsersController] },
      });
      const seen: Record<string, string | undefined> = {};
      for (const path of Object.keys(labels)) {
        const before = (await running.requests()).length;
        await (await fetch(running.url + path)).text();
        seen[path] = (await running.requests())[before]?.route;
      }
      expect(seen).toEqual(labels);
      expect(running.app.get(PerfService).snapshot().routes.length).toBeGreaterThan(0);
    });
  },
);
