import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { connect } from 'node:http2';
import { Readable } from 'node:stream';
import {
  Body,
  Controller,
  ForbiddenException,
  Get,
  HttpCode,
  Inject,
  Injectable,
  type MiddlewareConsumer,
  Module,
  type OnModuleDestroy,
  Param,
  Post,
  Scope,
  Sse,
  StreamableFile,
  UseGuards,
  Version,
  VersioningType,
} from '@nestjs/common';
import { of } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import { prometheusSink } from '../../src/entries/prometheus.js';
import { settle } from '../../src/entries/testing.js';
import {
  defer,
  Deferrer,
  type DeferredWork,
  DeferWork,
  Experiment,
  NoCompression,
  type PerfModuleOptions,
  PerfService,
  ResourceSampler,
  SharedResponse,
  SkipPerf,
  staticGates,
  Variant,
} from '../../src/index.js';
import { buildApp, closeApps, closeServer, listeningApp, ownServer, recordsOf } from '../fixtures/build-app.js';
import { decode } from '../fixtures/decode.js';
import { call, callAccepting } from '../fixtures/http-client.js';
import { Lines } from '../fixtures/lines.js';
import { givenObjects, PlainAdapter } from '../fixtures/plain-adapter.js';
import { RawClient } from '../fixtures/socket.js';
import { until } from '../fixtures/until.js';

const TEN_KB = 'compressible '.repeat(800);
let steps: string[] = [];
let open = (): void => {};
let held: Promise<void> = Promise.resolve();
const hold = (): void => void (held = new Promise((resolve) => (open = resolve)));
const json = { 'content-type': 'application/json' };

class RefusingGuard {
  canActivate(): boolean {
    throw new ForbiddenException('no');
  }
}

@Injectable()
class Receipt implements DeferredWork<string> {
  run(data: string): void {
    steps.push(`receipt ${data}`);
  }
}

@Controller('users')
class UsersController {
  constructor(@Inject(PerfService) private readonly perf: PerfService) {}
  @Get(':id')
  async findOne(@Param('id') id: string) {
    await new Promise((resolve) => setImmediate(resolve));
    this.perf.note({ rows: Number(id) });
    return { id };
  }
  @Post()
  async create(@Body() body: { rows: number }) {
    await new Promise((resolve) => setImmediate(resolve));
    this.perf.note({ rows: body.rows });
    return body;
  }
  @Get('refused/now')
  @UseGuards(RefusingGuard)
  refused() {}
  @Get('fails/now')
  fails() {
    throw new Error('not told');
  }
  @Get('files/*path')
  files() {
    return 'file';
  }
  @Get('skipped/now')
  @SkipPerf()
  skipped() {
    return 'skipped';
  }
  @Version('2')
  @Get('versioned/now')
  versioned() {
    return 'of 2';
  }
}

@Controller({ path: 'scoped', scope: Scope.REQUEST })
class ScopedController {
  constructor(@Inject(PerfService) private readonly perf: PerfService) {}
  @Get(':rows')
  @DeferWork(({ result }) => void steps.push(`scoped ${result}`))
  get(@Param('rows') rows: string) {
    this.perf.note({ rows: Number(rows) });
    return rows;
  }
}

@Controller('work')
class WorkController {
  constructor(@Inject(Deferrer) private readonly deferrer: Deferrer) {}
  @Post('decorated')
  @HttpCode(202)
  @DeferWork(Receipt)
  @DeferWork(
    ({ result, status, request }) => void steps.push(`function ${result} ${status} ${String(request.headers['x-by'])}`),
  )
  async decorated(@Body() { id }: { id: string }) {
    await held;
    steps.push('handler');
    return id;
  }
  @Get('called')
  async called() {
    await new Promise((resolve) => setImmediate(resolve));
    defer(({ status }) => void steps.push(`defer() ${status}`));
    this.deferrer.defer(({ status }) => void steps.push(`deferrer.defer() ${status}`));
    steps.push('handler');
    return 'ok';
  }
  @Get('failing')
  @DeferWork(() => void steps.push('must not run'))
  @DeferWork(({ status }) => void steps.push(`failed with ${status}`), { when: 'error' })
  failing() {
    throw new ForbiddenException('no');
  }
}

@Controller('bodies')
class BodiesController {
  @Get('large')
  large() {
    return { text: TEN_KB };
  }
  @Get('small')
  small() {
    return { text: 'small' };
  }
  @Get('plain')
  @NoCompression()
  plain() {
    return { text: TEN_KB };
  }
  @Get('file')
  file() {
    return new StreamableFile(Readable.from([Buffer.from(TEN_KB), Buffer.from(TEN_KB)]), { type: 'text/plain' });
  }
  @Sse('events')
  events() {
    return of({ data: 'one' }, { data: 'two' });
  }
  @Get('shared')
  @SharedResponse({ ttlMs: 60_000 })
  async shared() {
    steps.push('shared');
    await held;
    return { made: steps.filter((step) => step === 'shared').length, text: TEN_KB };
  }
  @Get('held')
  async held() {
    steps.push('held');
    await held;
    return 'late';
  }
  @Get('stream')
  stream() {
    steps.push('held');
    return new StreamableFile(
      Readable.from(
        (async function* () {
          yield Buffer.from('first ');
          await held;
          yield Buffer.from('last');
        })(),
      ),
    );
  }
}

@Controller('gates')
class GatesController {
  @Get('blue')
  @Experiment('blue')
  blue(@Variant('blue') variant: string) {
    return variant;
  }
}

const metadata = {
  controllers: [UsersController, ScopedController, WorkController, BodiesController, GatesController],
  providers: [Receipt],
};

afterEach(async () => {
  open();
  held = Promise.resolve();
  await closeApps();
  steps = [];
});

describe.each(givenObjects)(
  'on an adapter that nobody knows, whose handlers get objects of the kind `%s`,',
  (objects) => {
    const start = (perf: PerfModuleOptions = {}, main: Parameters<typeof listeningApp>[1] = {}) =>
      listeningApp(new PlainAdapter(objects), { metadata, perf, ...main });

    it('the boot says what does not work, and the first line names what is on', async () => {
      const lines = new Lines();
      await start({ eventLoop: true }, { nest: { logger: lines } });
      expect(lines.all.filter((line) => /adapter|unknown|platform/i.test(line))).toEqual([
        'On the HTTP adapter "plain" everything works but labels for what Nest has not registered, such as static files ' +
          'and routers of the framework: their requests are recorded without a route.',
      ]);
      expect(lines.all.filter((line) => line.startsWith('On: '))[0]).toMatch(
        /event loop.*latency.*compression.*deferred work/,
      );
    });

    it('each request is recorded once, with its status, its route and its handler', async () => {
      const built = await start(
        {},
        {
          beforeInit: (app) => {
            app.setGlobalPrefix('api');
            app.enableVersioning({ type: VersioningType.URI });
          },
        },
      );
      const asked: [method: string, path: string, body?: string][] = [
        ['GET', '/api/users/7?secret=1'],
        ['POST', '/api/users', '{"rows":3}'],
        ['POST', '/api/users', '{"rows"'],
        ['GET', '/api/users/refused/now'],
        ['GET', '/api/users/fails/now'],
        ['GET', '/api/users/files/a/b.png'],
        ['GET', '/api/users/skipped/now'],
        ['GET', '/api/v2/users/versioned/now'],
        ['GET', '/api/scoped/4'],
        ['GET', '/api/nowhere'],
        ['GET', '/nowhere'],
      ];
      for (const [method, path, body] of asked) {
        await call(built.url + path, { method, ...(body === undefined ? {} : { body, headers: json }) });
      }
      const records = await recordsOf(built, asked.length - 1);
      expect(records.map(({ method, route, handler, status }) => [method, route, handler, status])).toEqual([
        ['GET', '/api/users/:id', 'UsersController.findOne', 200],
        ['POST', '/api/users', 'UsersController.create', 201],
        ['POST', '', null, 400],
        ['GET', '/api/users/refused/now', 'UsersController.refused', 403],
        ['GET', '/api/users/fails/now', 'UsersController.fails', 500],
        ['GET', '/api/users/files/*path', 'UsersController.files', 200],
        ['GET', '/api/v2/users/versioned/now', 'UsersController.versioned', 200],
        ['GET', '/api/scoped/:rows', 'ScopedController.get', 200],
        ['GET', '', null, 404],
        ['GET', '', null, 404],
      ]);
      expect(records.map(({ note }) => note)).toEqual([
        { rows: 7 },
        { rows: 3 },
        ...Array.from({ length: 5 }, () => null),
        { rows: 4 },
        null,
        null,
      ]);
      const { routes } = built.app.get(PerfService).snapshot();
      expect(routes.map(({ method, route, count }) => `${method} ${route} ${count}`).toSorted()).toEqual([
        '*  3',
        'GET /api/scoped/:rows 1',
        'GET /api/users/:id 1',
        'GET /api/users/fails/now 1',
        'GET /api/users/files/*path 1',
        'GET /api/users/refused/now 1',
        'GET /api/v2/users/versioned/now 1',
        'POST /api/users 1',
      ]);
    });

    it('notes of 50 requests at a time are never mixed', async () => {
      const built = await start();
      const rows = Array.from({ length: 50 }, (_, i) => i + 1);
      await Promise.all(
        rows.map((n) =>
          n % 2 === 0
            ? call(`${built.url}/users/${n}`, { headers: { 'x-request-id': `n${n}` } })
            : call(`${built.url}/users`, {
                method: 'POST',
                headers: { ...json, 'x-request-id': `n${n}` },
                body: JSON.stringify({ rows: n, more: 'x'.repeat(40_000) }),
              }),
        ),
      );
      const records = await recordsOf(built, rows.length);
      expect(new Map(records.map(({ id, note }) => [id, note]))).toEqual(
        new Map(rows.map((n) => [`n${n}`, { rows: n }])),
      );
    });

    it('`unit` gets what the handlers get, with what middleware has put there', async () => {
      @Module({})
      class UsersModule {
        configure(consumer: MiddlewareConsumer): void {
          consumer
            .apply((request: { user?: object }, _response: unknown, next: () => void) => {
              request.user = { id: 'u-7' };
              next();
            })
            .forRoutes('users');
        }
      }
      const built = await start({}, { metadata: { ...metadata, imports: [UsersModule] } });
      await call(`${built.url}/users/7`);
      expect(await recordsOf(built, 1)).toMatchObject([{ unit: { userId: 'u-7' } }]);
    });

    it('the page and the metrics answer, and are no requests of the application', async () => {
      const authorize = ({ headers }: { headers: Record<string, unknown> }): boolean => headers['x-key'] === 'k1';
      const built = await start({
        dashboard: { authorize },
        snapshotEndpoint: { authorize },
        sinks: [prometheusSink({ authorize })],
      });
      await call(`${built.url}/users/7`);
      await settle(built.app);
      const headers = { 'x-key': 'k1' };
      for (const path of ['/perf/', '/perf/data', '/perf/snapshot', '/metrics']) {
        expect([path, (await call(built.url + path)).status]).toEqual([path, 403]);
        expect([path, (await call(built.url + path, { headers })).status]).toEqual([path, 200]);
      }
      const page = await call(`${built.url}/perf/`, { headers });
      expect(page.headers['content-type']).toMatch(/^text\/html/);
      const script = /src="([^"]+)"/.exec(page.text)![1]!;
      const loaded = await callAccepting(new URL(script, `${built.url}/perf/`).href, 'br', { headers });
      expect([loaded.status, loaded.headers['content-type']]).toEqual([200, 'text/javascript; charset=utf-8']);
      expect((await call(`${built.url}/perf`, { headers: { ...headers, accept: 'text/plain' } })).text).toContain(
        'GET /users/:id',
      );
      expect((await call(`${built.url}/metrics`, { headers })).text).toMatch(
        /http_server_request_duration_seconds_count\{[^}]*http_route="\/users\/:id"[^}]*\} 1\n/,
      );
      expect((await recordsOf(built, 1)).map(({ route }) => route)).toEqual(['/users/:id']);
    });

    it('`@DeferWork` runs its works once each, in order, after the response, with its status', async () => {
      const built = await start();
      hold();
      const answered = call(`${built.url}/work/decorated`, {
        method: 'POST',
        headers: { ...json, 'x-by': 'me' },
        body: '{"id":"7"}',
      }).then(({ status, text }) => steps.push(`answered ${status} ${text}`));
      open();
      await answered;
      await settle(built.app);
      await until('both works', () => steps.length === 4);
      expect(steps.filter((step) => !step.startsWith('answered'))).toEqual([
        'handler',
        'receipt 7',
        'function 7 202 me',
      ]);
      expect(steps).toContain('answered 202 7');
      expect(built.app.get(Deferrer).stats()).toMatchObject({ accepted: 2, completed: 2, failed: 0 });
      expect(built.sink.records.filter(({ kind }) => kind === 'deferred')).toMatchObject([
        { route: '/work/decorated', outcome: 'completed' },
        { route: '/work/decorated', outcome: 'completed' },
      ]);
    });

    it('`@DeferWork` of a request-scoped controller runs, and that of a failed handler heeds `when`', async () => {
      const built = await start();
      await call(`${built.url}/scoped/3`);
      await call(`${built.url}/work/failing`);
      await settle(built.app);
      expect(steps).toEqual(['scoped 3', 'failed with 403']);
    });

    it('defer() and deferrer.defer() run after the response, and know its status', async () => {
      const built = await start();
      await call(`${built.url}/work/called`);
      await settle(built.app);
      expect(steps).toEqual(['handler', 'defer() 200', 'deferrer.defer() 200']);
    });

    it('an answer of 10 KB is compressed, a small one and that of `@NoCompression()` are not', async () => {
      const built = await start();
      const large = await callAccepting(`${built.url}/bodies/large`, 'gzip');
      expect(large.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'accept-encoding' });
      expect([JSON.parse(large.text), large.raw.length < 1_000]).toEqual([{ text: TEN_KB }, true]);
      const again = await callAccepting(`${built.url}/bodies/large`, 'gzip', {
        headers: { 'if-none-match': large.headers.etag ?? '' },
      });
      expect([again.status, again.text]).toEqual(large.headers.etag === undefined ? [200, large.text] : [304, '']);
      for (const path of ['small', 'plain']) {
        const answer = await callAccepting(`${built.url}/bodies/${path}`, 'gzip');
        expect([path, answer.status, answer.headers['content-encoding']]).toEqual([path, 200, undefined]);
      }
      const file = await callAccepting(`${built.url}/bodies/file`, 'br');
      expect([file.headers['content-encoding'], file.text]).toEqual(['br', TEN_KB + TEN_KB]);
      // Nest itself writes events to the response that it is given, or to its `raw`.
      if (objects !== 'incoming') {
        const events = await callAccepting(`${built.url}/bodies/events`, 'gzip');
        expect([events.status, events.text]).toEqual([200, expect.stringMatching(/data: one\n[^]*data: two\n/)]);
      }
      await settle(built.app);
      expect(built.app.get(PerfService).snapshot().compression).toMatchObject({
        compressed: 2 + Number(again.status === 200),
      });
    });

    it('`@SharedResponse()` runs the handler once for those who wait and those who come later', async () => {
      const built = await start();
      hold();
      const waiting = Array.from({ length: 5 }, () => callAccepting(`${built.url}/bodies/shared`, 'gzip'));
      await until('the handler', () => steps.length === 1);
      await until('all callers', () => inFlight(built.app.get(PerfService)) === 5);
      open();
      const answers = [...(await Promise.all(waiting)), await callAccepting(`${built.url}/bodies/shared`, 'gzip')];
      for (const { status, text, headers } of answers) {
        expect([status, JSON.parse(text), headers['content-encoding'], headers['content-type']]).toEqual([
          200,
          { made: 1, text: TEN_KB },
          'gzip',
          'application/json; charset=utf-8',
        ]);
      }
      const tag = answers.at(-1)!.headers.etag;
      expect(tag).toBeDefined();
      const unchanged = await callAccepting(`${built.url}/bodies/shared`, 'gzip', {
        headers: { 'if-none-match': tag! },
      });
      expect(unchanged.status).toBe(304);
      // Somebody who is known gets an answer of its own.
      const known = await callAccepting(`${built.url}/bodies/shared`, 'gzip', { headers: { cookie: 'session=1' } });
      expect(JSON.parse(known.text)).toMatchObject({ made: 2 });
      expect(steps).toEqual(['shared', 'shared']);
    });

    it('the maker of a shared answer who has that answer already gets 304, and those who wait get the body', async () => {
      const built = await start();
      const first = await callAccepting(`${built.url}/bodies/shared`, 'gzip');
      await closeApps();
      const other = await start();
      steps = [];
      hold();
      const headers = { 'if-none-match': first.headers.etag! };
      const maker = callAccepting(`${other.url}/bodies/shared`, 'gzip', { headers });
      await until('the handler', () => steps.length === 1);
      const waits = callAccepting(`${other.url}/bodies/shared`, 'gzip');
      await until('both callers', () => inFlight(other.app.get(PerfService)) === 2);
      open();
      expect([(await maker).status, (await waits).status]).toEqual([304, 200]);
      expect(JSON.parse((await waits).text)).toEqual({ made: 1, text: TEN_KB });
    });

    it('a client that leaves before the head is recorded as aborted, and so is one in the middle of a stream', async () => {
      const built = await start();
      hold();
      const early = await RawClient.open(built.port);
      early.get('/bodies/held');
      await until('the handler', () => steps.length === 1);
      early.leave();
      await until('the abort', () => inFlight(built.app.get(PerfService)) === 0);
      open();
      hold();
      const late = await RawClient.open(built.port);
      late.get('/bodies/stream');
      await late.until('first ');
      late.leave();
      await until('the abort', () => inFlight(built.app.get(PerfService)) === 0);
      open();
      const records = await recordsOf(built, 2);
      expect(records.map(({ route, status, outcome }) => [route, status, outcome])).toEqual([
        ['/bodies/held', 499, 'aborted'],
        ['/bodies/stream', 200, 'aborted'],
      ]);
    });

    it('`@Experiment()` and `@Variant()` decide, and the record has the variant', async () => {
      const gates = staticGates({ blue: 1 });
      const built = await start({ experiments: { gates } });
      expect((await call(`${built.url}/gates/blue`)).text).toBe('on');
      expect(await recordsOf(built, 1)).toMatchObject([{ variants: { blue: 'on' } }]);
    });

    it('closing waits for open requests, then drains their work before the application’s own hooks, and flushes', async () => {
      @Injectable()
      class Database {
        onApplicationShutdown(): void {
          steps.push('database closes');
        }
      }
      @Injectable()
      class Early implements OnModuleDestroy {
        onModuleDestroy(): void {
          steps.push('closing');
          open();
        }
      }
      const built = await start({}, { metadata: { ...metadata, providers: [Receipt, Database, Early] } });
      hold();
      const body = '{"id":"7"}';
      const answered = call(`${built.url}/work/decorated`, { method: 'POST', headers: json, body });
      await until('the request', () => inFlight(built.app.get(PerfService)) === 1);
      await until('the handler waits', () => built.app.get(Deferrer).stats().accepted === 0);
      await built.app.close();
      expect((await answered).status).toBe(202);
      expect(steps).toEqual(['closing', 'handler', 'receipt 7', 'function 7 202 undefined', 'database closes']);
      expect(built.sink.records.filter(({ kind }) => kind === 'request')).toMatchObject([
        { route: '/work/decorated', status: 202, outcome: 'completed' },
      ]);
      await expect(call(built.url)).rejects.toThrow(/ECONNREFUSED/);
    });
  },
);

it('requests of a server of the application’s own, made of the adapter, are recorded once', async () => {
  const adapter = new PlainAdapter();
  const built = await listeningApp(adapter, { metadata });
  const { server, url } = await ownServer(adapter.getInstance<RequestListener>());
  await call(`${url}/users/7`);
  await call(`${url}/work/called`);
  expect(await recordsOf(built, 2)).toMatchObject([
    { route: '/users/:id', handler: 'UsersController.findOne', status: 200, note: { rows: 7 } },
    { route: '/work/called', status: 200 },
  ]);
  expect(steps).toEqual(['handler', 'defer() 200', 'deferrer.defer() 200']);
  await closeServer(server);
});

it('an adapter without a Node.js server boots with one clear sentence, and runs without what needs HTTP', async () => {
  class OtherServer extends PlainAdapter {
    override getHttpServer(): never {
      return {} as never;
    }
  }
  const lines = new Lines();
  const { app } = await buildApp(new OtherServer(), { metadata, nest: { logger: lines } });
  expect(lines.all.filter((line) => line.includes('"plain"'))).toEqual([
    'The HTTP adapter "plain" does not run on a Node.js server: its requests are neither measured nor compressed, and ' +
      '@DeferWork does nothing. Resources and the event loop are still observed.',
  ]);
  expect(app.get(ResourceSampler).sample().process.rssBytes).toBeGreaterThan(0);
  app.get(Deferrer).defer(() => void steps.push('deferred'));
  await app.close();
  expect(steps).toEqual(['deferred']);
});

it('over HTTP/2 requests are recorded, answered and compressed, and work runs', async () => {
  const built = await listeningApp(new PlainAdapter('node', true), { metadata });
  const session = connect(built.url);
  const get = async (path: string): Promise<[unknown, unknown, string]> => {
    const stream = session.request({ ':path': path, 'accept-encoding': 'gzip' });
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk as Buffer);
    const coding = headers['content-encoding'] as string | undefined;
    return [headers[':status'], coding, decode(coding, Buffer.concat(chunks)).toString()];
  };
  expect(await get('/users/7')).toEqual([200, undefined, '{"id":"7"}']);
  expect(await get('/bodies/large')).toEqual([200, 'gzip', JSON.stringify({ text: TEN_KB })]);
  expect(await get('/bodies/file')).toEqual([200, 'gzip', TEN_KB + TEN_KB]);
  expect(await get('/bodies/shared')).toEqual([200, 'gzip', JSON.stringify({ made: 1, text: TEN_KB })]);
  expect(await get('/work/called')).toEqual([200, undefined, 'ok']);
  expect((await get('/nowhere'))[0]).toBe(404);
  const records = await recordsOf(built, 6);
  expect(records.map(({ route, status, outcome }) => [route, status, outcome])).toEqual([
    ['/users/:id', 200, 'completed'],
    ['/bodies/large', 200, 'completed'],
    ['/bodies/file', 200, 'completed'],
    ['/bodies/shared', 200, 'completed'],
    ['/work/called', 200, 'completed'],
    ['', 404, 'completed'],
  ]);
  expect(records[0]?.note).toEqual({ rows: 7 });
  expect(steps).toEqual(['shared', 'handler', 'defer() 200', 'deferrer.defer() 200']);
  session.close();
});

const inFlight = (perf: PerfService): number => perf.snapshot().routes.reduce((sum, row) => sum + row.inFlight, 0);
