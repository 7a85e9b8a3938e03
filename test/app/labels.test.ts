import { createRequire } from 'node:module';
import type { ServerResponse } from 'node:http';
import { Controller, Get, Inject, type MiddlewareConsumer, Module, RequestMethod } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { afterEach, describe, expect, it } from 'vitest';
import { PerfService } from '../../src/index.js';
import { closeApps, listeningApp, recordsOf, type BuiltApp } from '../fixtures/build-app.js';
import { until } from '../fixtures/until.js';

interface Routes {
  (request: object, response: ServerResponse, next: () => void): void;
  get: (path: string, handle: (request: object, response: ServerResponse) => void) => void;
  use: (handle: (request: { path: string }, response: ServerResponse, next: () => void) => void) => void;
}
/** Express is a dependency of Nest's platform, not of this package. */
const platform = createRequire(createRequire(import.meta.url).resolve('@nestjs/platform-express'));
const { Router } = platform('express') as { Router: () => Routes };

const tenants = ['acme', 'evil%0d%0a4711', '4711', 'umbrella-2', 'x'.repeat(300), 'anna@example.org'];
const labelsOf = ({ app }: BuiltApp): string[] =>
  app
    .get(PerfService)
    .snapshot()
    .routes.map(({ route }) => route);
const answer = (_request: object, response: ServerResponse): void => void response.end('ok');

@Controller('plain')
class PlainController {
  @Get()
  get() {
    return 'plain';
  }
}

@Controller('health')
class HealthController {
  @Get()
  get() {
    return 'up';
  }
}

afterEach(closeApps);

describe('labels of what is mounted on Express', () => {
  it.each([
    ['a router', () => Router()],
    ['an application', () => new ExpressAdapter().getInstance<Routes>()],
  ])(
    '%s below a mount path with a parameter: segments that may be ids or secrets are in no label',
    async (_name, make) => {
      const mounted = make();
      mounted.get('/orders/:id', answer);
      mounted.get('/health', answer);
      const built = await listeningApp(new ExpressAdapter(), {
        beforeInit: (app) => void app.use('/t/:tenant', mounted),
      });
      for (const tenant of tenants) {
        for (const path of ['orders/1', 'orders/2', 'health', 'nowhere']) {
          await (await fetch(`${built.url}/t/${tenant}/${path}`)).text();
        }
      }
      const records = await recordsOf(built, tenants.length * 4);
      const labels = new Set([...labelsOf(built), ...records.map(({ route }) => route)]);
      // Express reports a mount path as the client has sent it: short words of letters may be the application's own.
      expect([...labels].toSorted()).toEqual([
        '',
        '/t/*/health',
        '/t/*/orders/:id',
        '/t/acme/health',
        '/t/acme/orders/:id',
      ]);
      expect(records.filter(({ status }) => status === 404).map(({ route }) => route)).toEqual(tenants.map(() => ''));
    },
  );

  it('so many mount paths have labels of their own, whatever clients send', async () => {
    const mounted = Router();
    mounted.get('/orders/:id', answer);
    const built = await listeningApp(new ExpressAdapter(), {
      beforeInit: (app) => void app.use('/t/:tenant', mounted),
    });
    const letters = 'abcdefghijklmnopqrst';
    for (const first of letters) {
      await Promise.all(Array.from(letters, (second) => fetch(`${built.url}/t/${first}${second}/orders/1`)));
    }
    await recordsOf(built, letters.length ** 2);
    // Beyond 200 they share the row of what has no route.
    expect(labelsOf(built)).toHaveLength(201);
    expect(labelsOf(built)).toContain('');
  });

  it('a router below a mount path without parameters keeps the whole pattern', async () => {
    const mounted = Router();
    mounted.get('/orders/:id', answer);
    const built = await listeningApp(new ExpressAdapter(), { beforeInit: (app) => void app.use('/shop', mounted) });
    await (await fetch(`${built.url}/shop/orders/1`)).text();
    expect(await recordsOf(built, 1)).toMatchObject([{ route: '/shop/orders/:id', status: 200 }]);
  });

  /**
   * A user of GraphQL expects a row of its own, apart from the 404s: the path under which `app.use()` has mounted what
   * answered, as it was written there. What the client writes behind it is no part of the label.
   */
  it('a function that is mounted and answers by itself, as GraphQL servers are, has the mount path as its label', async () => {
    const built = await listeningApp(new ExpressAdapter(), {
      metadata: { controllers: [PlainController] },
      beforeInit: (app) => {
        app.use('/graphql', (_request: object, response: ServerResponse) => {
          setImmediate(() => response.end('{"data":{}}'));
        });
      },
    });
    const paths = ['/graphql', '/graphql/evil1', '/graphql?evil=2', '/GRAPHQL/evil3', '/plain', '/evil4'];
    for (const path of paths) await (await fetch(built.url + path)).text();
    const records = await recordsOf(built, paths.length);
    expect(records.map(({ route, status }) => [route, status])).toEqual([
      ['/graphql', 200],
      ['/graphql', 200],
      ['/graphql', 200],
      ['/graphql', 200],
      ['/plain', 200],
      ['', 404],
    ]);
    for (const label of labelsOf(built)) expect(label).not.toContain('evil');
  });

  it('is the same whether somebody has looked at the request while middleware held it, or not', async () => {
    let held: (() => void)[] = [];
    const built = await listeningApp(new ExpressAdapter(), {
      beforeInit: (app) => {
        app.use('/api', (_request: object, _response: object, next: () => void) => void held.push(next));
        (app.getHttpAdapter().getInstance() as Routes).get('/api/raw/:id', answer);
      },
    });
    const perf = built.app.get(PerfService);
    for (const looks of [false, true]) {
      held = [];
      const asked = ['/api/raw/1', '/api/nothing'].map((path) => fetch(built.url + path));
      await until('both in middleware', () => held.length === 2);
      if (looks) expect(perf.snapshot().routes.map(({ inFlight }) => inFlight)).toContain(2);
      for (const next of held) next();
      await Promise.all(asked);
    }
    const routes = (await recordsOf(built, 4)).map(({ route }) => route);
    expect(routes.toSorted()).toEqual(['', '', '/api/raw/:id', '/api/raw/:id']);
  });

  it('mounted functions that let a request pass, and parameters in their paths, make no label', async () => {
    const built = await listeningApp(new ExpressAdapter(), {
      metadata: { controllers: [PlainController] },
      beforeInit: (app) => {
        app.use('/plain', (_request: object, _response: object, next: () => void) => next());
        app.use('/u/:user', (_request: object, response: ServerResponse) => void response.end('me'));
      },
    });
    for (const path of ['/plain', '/u/evil1', '/u/evil2/more']) await (await fetch(built.url + path)).text();
    const records = await recordsOf(built, 3);
    expect(records[0]).toMatchObject({ route: '/plain', handler: 'PlainController.get' });
    for (const label of labelsOf(built)) expect(label).not.toContain('evil');
    expect(new Set(records.slice(1).map(({ route }) => route)).size).toBe(1);
  });

  /** Nest registers middleware for a method, `ALL` included, as a route of Express, which every request then carries. */
  it('middleware of a module that lets a request pass is no route', async () => {
    const pass = (_request: object, _response: object, next: () => void): void => next();
    @Module({})
    class LoggingModule {
      constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost) {}
      configure(consumer: MiddlewareConsumer) {
        // As nestjs-pino registers itself.
        consumer.apply(pass).forRoutes({ path: '{*path}', method: RequestMethod.ALL });
        consumer.apply(pass).exclude('plain/none').forRoutes({ path: 'plain/*rest', method: RequestMethod.GET });
      }
      /** Where Nest's GraphQL module mounts its server, too. */
      onModuleInit() {
        this.host.httpAdapter.use('/graphql', answer);
      }
    }
    const built = await listeningApp(new ExpressAdapter(), {
      metadata: { imports: [LoggingModule], controllers: [PlainController] },
    });
    const paths = ['/plain', '/nowhere', '/plain/nowhere', '/', '/graphql', '/graphql/evil'];
    for (const path of paths) await (await fetch(built.url + path)).text();
    expect((await recordsOf(built, paths.length)).map(({ route, status }) => [route, status])).toEqual([
      ['/plain', 200],
      ['', 404],
      ['', 404],
      ['', 404],
      ['/graphql', 200],
      ['/graphql', 200],
    ]);
  });

  it('what others have registered is no handler’s: of a controller without a path of its own, or of one with the same end', async () => {
    @Controller()
    class RootController {
      @Get()
      root() {
        return 'root';
      }
    }
    const built = await listeningApp(new ExpressAdapter(), {
      metadata: { controllers: [RootController, PlainController] },
      beforeInit: (app) => {
        const express = app.getHttpAdapter().getInstance() as { get(path: string, serve: typeof answer): void };
        express.get('/raw/:id', answer);
        express.get('/legacy/plain', answer);
        app.use('/mounted', answer);
        app.use('/old', Router().get('/plain', answer));
      },
    });
    for (const path of ['/', '/raw/7', '/mounted', '/old/plain', '/legacy/plain'])
      await (await fetch(built.url + path)).text();
    expect((await recordsOf(built, 5)).map(({ route, handler }) => [route, handler])).toEqual([
      ['/', 'RootController.root'],
      ['/raw/:id', null],
      ['/mounted', null],
      ['/old/plain', null],
      ['/legacy/plain', null],
    ]);
  });

  /** `forRoutes()` registers the path of the route: two rows of one name would be two routes to a reader, and one series to Prometheus. */
  it.each([
    ['forRoutes() of a controller', [PlainController]],
    ['forRoutes() of a path', [{ path: 'plain', method: RequestMethod.GET }]],
  ] as const)('a request that middleware of a module refuses (%s) is one of its route', async (_name, targets) => {
    const refuse = ({ originalUrl }: { originalUrl: string }, response: ServerResponse, next: () => void): void => {
      if (!originalUrl.includes('stranger')) return next();
      response.statusCode = 401;
      response.end('who?');
    };
    @Module({})
    class AccessModule {
      configure(consumer: MiddlewareConsumer) {
        consumer.apply(refuse).forRoutes(...targets);
      }
    }
    const built = await listeningApp(new ExpressAdapter(), {
      metadata: { imports: [AccessModule], controllers: [PlainController] },
      beforeInit: (app) => void app.setGlobalPrefix('api'),
    });
    for (const path of ['/api/plain?stranger', '/api/plain', '/api/plain?stranger'])
      await (await fetch(built.url + path)).text();
    expect((await recordsOf(built, 3)).map(({ route, handler, status }) => [route, handler, status])).toEqual([
      ['/api/plain', 'PlainController.get', 401],
      ['/api/plain', 'PlainController.get', 200],
      ['/api/plain', 'PlainController.get', 401],
    ]);
    const rows = built.app.get(PerfService).snapshot().routes;
    expect(rows).toMatchObject([{ method: 'GET', route: '/api/plain', count: 3, statuses: { '2xx': 1, '4xx': 2 } }]);
  });

  /** Shops' image servers and mailboxes are routers that a module mounts so. */
  it('middleware of a module that answers by itself has the path it was given as its label', async () => {
    const files = Router();
    files.use((request, response, next) => (request.path === '/none.png' ? next() : answer(request, response)));
    const mailbox = Router();
    mailbox.get('/mails/:id', answer);
    @Module({})
    class FilesModule {
      configure(consumer: MiddlewareConsumer) {
        consumer.apply(files).forRoutes('assets');
        consumer.apply(mailbox).forRoutes('/mailbox');
      }
    }
    const built = await listeningApp(new ExpressAdapter(), {
      metadata: { imports: [FilesModule] },
      beforeInit: (app) => void app.setGlobalPrefix('api'),
    });
    const paths = [
      '/api/assets/evil1.png',
      '/api/ASSETS/evil2',
      '/api/mailbox/mails/1',
      '/api/assets/none.png',
      '/evil4',
    ];
    for (const path of paths) await (await fetch(built.url + path)).text();
    expect((await recordsOf(built, paths.length)).map(({ route }) => route)).toEqual([
      '/api/assets',
      '/api/assets',
      '/api/mailbox/mails/:id',
      '',
      '',
    ]);
    for (const label of labelsOf(built)) expect(label).not.toContain('evil');
  });

  /** Nest 12 answers what no route has matched under a prefix, and other methods of what is excluded from it, by routes of Express. */
  it('what no route has matched under a global prefix is no route', async () => {
    const built = await listeningApp(new ExpressAdapter(), {
      metadata: { controllers: [PlainController, HealthController] },
      beforeInit: (app) => void app.setGlobalPrefix('api', { exclude: ['health'] }),
    });
    const asked = [
      'GET /api/plain',
      'GET /api/nowhere',
      'GET /api',
      'POST /api/plain',
      'GET /nowhere',
      'GET /health',
      'POST /health',
    ];
    for (const one of asked) {
      const [method, path] = one.split(' ') as [string, string];
      await (await fetch(built.url + path, { method })).text();
    }
    expect((await recordsOf(built, asked.length)).map(({ route, status }) => [route, status])).toEqual([
      ['/api/plain', 200],
      ['', 404],
      ['', 404],
      ['', 404],
      ['', 404],
      ['/health', 200],
      ['', 404],
    ]);
  });
});
