import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Readable } from 'node:stream';
import {
  BadRequestException,
  type CanActivate,
  Catch,
  Controller,
  type ArgumentsHost,
  type ExceptionFilter,
  Get,
  HttpCode,
  Inject,
  Injectable,
  Param,
  Post,
  Req,
  Res,
  Scope,
  Sse,
  StreamableFile,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import { HttpAdapterHost, REQUEST } from '@nestjs/core';
import { interval, map, of } from 'rxjs';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  defer,
  Deferrer,
  DeferWork,
  type DeferContext,
  type DeferInfo,
  type DeferredRecord,
  type DeferredWork,
} from '../../src/index.js';
import { settle } from '../../src/entries/testing.js';
import { adapters, type TestApp } from '../fixtures/app.js';
import { RawClient } from '../fixtures/socket.js';
import { until } from '../fixtures/until.js';
import { startDeferring } from '../fixtures/works.js';

/** What ran, in order. Each test has its own. */
@Injectable()
class Log {
  readonly lines: string[] = [];
  readonly details: Record<string, unknown>[] = [];
  entered = false;
}

@Injectable()
class Receipt implements DeferredWork<{ orderId: string }> {
  constructor(@Inject(Log) private readonly log: Log) {}
  prepare({ result, error, status, requestId }: DeferContext): { orderId: string } {
    this.log.details.push({ prepare: { result, error, status, requestId } });
    return { orderId: (result as { id: string }).id };
  }
  run(data: { orderId: string }, { attempt, requestId, status }: DeferInfo): void {
    this.log.lines.push(`receipt ${data.orderId}`);
    this.log.details.push({ run: { data, attempt, requestId, status } });
  }
}

@Injectable()
class Plain implements DeferredWork {
  constructor(@Inject(Log) private readonly log: Log) {}
  run(data: unknown): void {
    this.log.lines.push(`plain ${JSON.stringify(data)}`);
  }
}

@Injectable({ scope: Scope.REQUEST })
class Scoped implements DeferredWork<string> {
  constructor(
    @Inject(Log) private readonly log: Log,
    @Inject(REQUEST) private readonly request: { url: string },
  ) {}
  prepare(): string {
    return this.request.url;
  }
  run(url: string): void {
    this.log.lines.push(`scoped ${url}`);
  }
}

@Injectable()
class Refuse implements CanActivate {
  canActivate(): boolean {
    return false;
  }
}

@Catch(BadRequestException)
class AnswerAnyway implements ExceptionFilter {
  constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost) {}
  catch(_: unknown, host: ArgumentsHost): void {
    this.host.httpAdapter.reply(host.switchToHttp().getResponse(), { forgiven: true }, 200);
  }
}

const line =
  (text: string) =>
  ({ request }: DeferContext): void => {
    logOf(request).lines.push(text);
  };
/** Function forms have no injection: the test puts its log on the request. */
const logOf = (request: unknown): Log => (request as { log: Log }).log;

async function clientLeft(request: unknown): Promise<void> {
  const { raw, socket } = request as { raw?: { socket: Socket }; socket: Socket };
  await once(raw?.socket ?? socket, 'close');
}

@Controller('orders')
@DeferWork(line('controller first'), { when: 'always' })
@DeferWork(line('controller second'))
class OrdersController {
  constructor(
    @Inject(Log) private readonly log: Log,
    @Inject(Deferrer) private readonly deferrer: Deferrer,
  ) {}

  private use(request: unknown): void {
    (request as { log: Log }).log = this.log;
  }

  @Post()
  @DeferWork(Receipt)
  @DeferWork(line('handler second'))
  create(@Req() request: unknown) {
    this.use(request);
    return { id: 'o-1' };
  }

  @Get('ordered')
  @DeferWork(line('handler'))
  ordered(@Req() request: unknown) {
    this.use(request);
    this.deferrer.defer(() => this.log.lines.push('deferred first'));
    defer(async () => {
      await delay(5);
      this.log.lines.push('deferred second');
    });
    return 'ok';
  }

  @Get('plain/:id')
  @DeferWork(Plain)
  plain(@Req() request: unknown, @Param('id') id: string) {
    this.use(request);
    return of({ id });
  }

  @Get('scoped')
  @DeferWork(Scoped)
  scoped(@Req() request: unknown) {
    this.use(request);
    return 'ok';
  }

  @Get('throws')
  @DeferWork(Receipt)
  @DeferWork(line('on error'), { when: 'error' })
  @DeferWork(line('always'), { when: 'always' })
  throws(@Req() request: unknown): never {
    this.use(request);
    throw new BadRequestException('no');
  }

  @Get('four-hundred')
  @HttpCode(404)
  @DeferWork(Plain)
  @DeferWork(line('on error'), { when: 'error' })
  missing(@Req() request: unknown) {
    this.use(request);
    this.deferrer.defer(() => this.log.lines.push('success only'));
    this.deferrer.defer(() => this.log.lines.push('error only'), { when: 'error' });
    return 'nothing here';
  }

  @Get('forgiven')
  @UseFilters(AnswerAnyway)
  @DeferWork(line('after an error that became 200'))
  @DeferWork(line('on error'), { when: 'error' })
  async forgiven(@Req() request: unknown): Promise<void> {
    this.use(request);
    await delay(1);
    throw new BadRequestException('no');
  }

  @Get('guarded')
  @UseGuards(Refuse)
  @DeferWork(Plain, { when: 'always' })
  guarded() {
    return 'never';
  }

  @Get('slow')
  @DeferWork(Plain)
  async slow(@Req() request: unknown) {
    this.use(request);
    this.deferrer.defer(() => this.log.lines.push('deferred before'));
    this.log.entered = true;
    await clientLeft(request);
    this.deferrer.defer(() => this.log.lines.push('deferred late'));
    return 'too late';
  }

  @Get('slow-failure')
  @DeferWork(Plain)
  @DeferWork(line('on error'), { when: 'error' })
  async slowFailure(@Req() request: unknown) {
    this.use(request);
    this.deferrer.defer(() => this.log.lines.push('deferred before'));
    this.log.entered = true;
    await clientLeft(request);
    throw new BadRequestException('too late, and wrong');
  }

  @Get('stream')
  @DeferWork(line('after the stream'))
  stream(@Req() request: unknown) {
    this.use(request);
    this.deferrer.defer(() => this.log.lines.push('deferred'));
    const log = this.log;
    return new StreamableFile(
      Readable.from(
        (async function* () {
          yield Buffer.from('first ');
          await delay(30);
          log.lines.push('last byte');
          yield Buffer.from('last');
        })(),
      ),
    );
  }

  @Sse('events')
  @DeferWork(line('after the events'))
  events(@Req() request: unknown) {
    this.use(request);
    return interval(5).pipe(map((n) => ({ data: `event ${n}` })));
  }

  @Get('res')
  @DeferWork(line('after a manual answer'))
  async manual(@Req() request: unknown, @Res() response: { send(body: string): void }) {
    this.use(request);
    response.send('done');
    await delay(10);
  }

  @Get('nested')
  nested() {
    this.deferrer.defer(() => {
      this.log.lines.push('outer');
      defer(() => this.log.lines.push('inner'));
      this.deferrer.defer(() => this.log.lines.push('inner error'), { when: 'error' });
    });
    return 'ok';
  }

  @Get('bad-work')
  @DeferWork(() => Promise.reject(new Error('rejected')), { name: 'rejects' })
  @DeferWork(
    () => {
      throw new Error('thrown');
    },
    { name: 'throws' },
  )
  @DeferWork(() => new Promise(() => {}), { name: 'hangs', timeoutMs: 30 })
  bad(@Req() request: unknown) {
    this.use(request);
    return 'fine';
  }

  @Get('bad-prepare')
  @DeferWork(Receipt)
  badPrepare(@Req() request: unknown) {
    this.use(request);
    return null;
  }

  @Get('context/:id')
  async context(@Param('id') id: string) {
    await delay(Number(id) % 5);
    defer(async ({ requestId }) => {
      await delay(Number(id) % 3);
      defer((inner) => this.log.details.push({ id, requestId, inner: inner.requestId }));
    });
    return id;
  }
}

@Controller({ path: 'per-request', scope: Scope.REQUEST })
class PerRequestController {
  constructor(@Inject(Log) private readonly log: Log) {}
  @Get(':id')
  @DeferWork(Plain)
  @DeferWork(({ result, status }) => void (result as { log: Log }).log?.lines.push(`function ${status}`))
  get(@Param('id') id: string) {
    return { id, toJSON: () => ({ id }), log: this.log };
  }
}

const metadata = {
  controllers: [OrdersController, PerRequestController],
  providers: [Log, Receipt, Plain, Scoped],
};

describe.each(adapters)('deferred work on %s', (adapter) => {
  let running: TestApp;
  let log: Log;
  let deferrer: Deferrer;
  beforeEach(async () => {
    running = await startDeferring(adapter, metadata);
    [log, deferrer] = [running.app.get(Log), running.app.get(Deferrer)];
  });
  /** Answers with the status, once all of its work has ended. */
  const get = async (path: string): Promise<number> => {
    const response = await fetch(`${running.url}${path}`);
    await response.text();
    await settle(running.app);
    return response.status;
  };
  const deferred = async (): Promise<DeferredRecord[]> => {
    await settle(running.app);
    return running.sink.records.filter((record) => record.kind === 'deferred');
  };

  it('runs a class with what prepare() picked, and a function with the final status, after the response', async () => {
    const response = await fetch(`${running.url}/orders`, { method: 'POST', headers: { 'x-request-id': 'req-7' } });
    expect([response.status, await response.json()]).toEqual([201, { id: 'o-1' }]);
    await settle(running.app);
    expect(log.details).toEqual([
      { prepare: { result: { id: 'o-1' }, error: null, status: null, requestId: 'req-7' } },
      { run: { data: { orderId: 'o-1' }, attempt: 1, requestId: 'req-7', status: 201 } },
    ]);
  });

  it('runs the controller’s work before the handler’s, each in source order', async () => {
    await fetch(`${running.url}/orders`, { method: 'POST' });
    await settle(running.app);
    expect(log.lines).toEqual(['controller first', 'controller second', 'receipt o-1', 'handler second']);
  });

  it('runs what the handler has deferred first, in order, asynchronous work included', async () => {
    await get('/orders/ordered');
    expect(log.lines).toEqual([
      'deferred first',
      'deferred second',
      'controller first',
      'controller second',
      'handler',
    ]);
  });

  it('gives a class without prepare() the handler’s result, the last value of an Observable', async () => {
    expect(await (await fetch(`${running.url}/orders/plain/7`)).json()).toEqual({ id: '7' });
    await settle(running.app);
    expect(log.lines).toContain('plain {"id":"7"}');
  });

  it('resolves request-scoped work for its own request', async () => {
    await Promise.all(['1', '2', '3'].map((n) => get(`/orders/scoped?n=${n}`)));
    await settle(running.app);
    expect(log.lines.filter((text) => text.startsWith('scoped')).toSorted()).toEqual([
      'scoped /orders/scoped?n=1',
      'scoped /orders/scoped?n=2',
      'scoped /orders/scoped?n=3',
    ]);
  });

  it('works on request-scoped controllers', async () => {
    expect(await (await fetch(`${running.url}/per-request/5`)).json()).toEqual({ id: '5' });
    await settle(running.app);
    expect(log.lines).toEqual(['plain {"id":"5"}', 'function 200']);
  });

  describe('when', () => {
    it('a handler that throws: success work is neither prepared nor run', async () => {
      expect(await get('/orders/throws')).toBe(400);
      expect(log.lines).toEqual(['controller first', 'on error', 'always']);
      expect(log.details).toEqual([]);
      expect((await deferred()).map(({ outcome }) => outcome)).toEqual(['completed', 'completed', 'completed']);
    });

    it('the status decides, not the handler: 404 by @HttpCode is no success', async () => {
      expect(await get('/orders/four-hundred')).toBe(404);
      expect(log.lines).toEqual(['error only', 'controller first', 'on error']);
    });

    it('the status decides, not the handler: an error that a filter turned into 200 is a success', async () => {
      expect(await get('/orders/forgiven')).toBe(200);
      expect(log.lines).toEqual(['controller first', 'controller second', 'after an error that became 200']);
    });

    it('a guard that rejects arms nothing, not even `always`', async () => {
      expect(await get('/orders/guarded')).toBe(403);
      expect(log.lines).toEqual([]);
      expect(deferrer.stats().accepted).toBe(0);
    });

    it('a HEAD request runs what its GET would run', async () => {
      const response = await fetch(`${running.url}/orders/ordered`, { method: 'HEAD' });
      expect(response.status).toBe(200);
      await settle(running.app);
      expect(log.lines).toContain('handler');
    });
  });

  describe('clients that leave', () => {
    it('a client that left before a handler that succeeds: everything runs, what is armed late included', async () => {
      const client = await RawClient.open(running.port);
      client.get('/orders/slow');
      await until('the handler to start', () => log.entered);
      client.leave();
      await until('all work', () => log.lines.length === 5);
      expect(log.lines).toEqual([
        'deferred before',
        'deferred late',
        'controller first',
        'controller second',
        'plain "too late"',
      ]);
      expect((await running.requests())[0]).toMatchObject({ outcome: 'aborted', status: 499 });
    });

    it('a client that left before a handler that fails: only `error` and `always` run', async () => {
      const client = await RawClient.open(running.port);
      client.get('/orders/slow-failure');
      await until('the handler to start', () => log.entered);
      client.leave();
      await until('the work', () => log.lines.length === 2);
      await settle(running.app);
      expect(log.lines).toEqual(['controller first', 'on error']);
      expect(deferrer.stats()).toMatchObject({ accepted: 2, completed: 2, pending: 0 });
    });

    it('server-sent events: runs when the client has gone', async () => {
      const client = await RawClient.open(running.port);
      client.get('/orders/events');
      await client.until('data: event 3');
      expect(log.lines).toEqual([]);
      client.leave();
      await until('the work', () => log.lines.length === 3);
      expect(log.lines).toEqual(['controller first', 'controller second', 'after the events']);
    });
  });

  it('waits for the last byte of a stream', async () => {
    expect(await (await fetch(`${running.url}/orders/stream`)).text()).toBe('first last');
    await settle(running.app);
    expect(log.lines).toEqual(['last byte', 'deferred', 'controller first', 'controller second', 'after the stream']);
  });

  it('runs after a handler that answers by itself', async () => {
    await get('/orders/res');
    await until('the work', () => log.lines.length === 3);
    expect(log.lines).toEqual(['controller first', 'controller second', 'after a manual answer']);
  });

  it('appends what deferred work defers; a `when` of its own still counts', async () => {
    await get('/orders/nested');
    expect(log.lines).toEqual(['outer', 'inner']);
  });

  it('outside a request, deferrer.defer() and defer() run on the next turn', async () => {
    const turns: string[] = [];
    deferrer.defer(() => turns.push('task'));
    defer(() => turns.push('another'));
    turns.push('caller');
    await deferrer.idle();
    expect(turns).toEqual(['caller', 'task', 'another']);
  });

  it('survives work that rejects, throws or hangs, and tells each in its record', async () => {
    expect(await get('/orders/bad-work')).toBe(200);
    const records = (await deferred()).filter(({ name }) => ['rejects', 'throws', 'hangs'].includes(name));
    expect(records.map(({ name, outcome, error, attempt }) => [name, outcome, error, attempt])).toEqual([
      ['rejects', 'failed', 'rejected', 1],
      ['throws', 'failed', 'thrown', 1],
      ['hangs', 'timeout', 'took longer than 30 ms', 1],
    ]);
    expect(deferrer.stats()).toMatchObject({ failed: 3, running: 0, pending: 0 });
  });

  it('a prepare() that throws costs the client nothing and is counted as failed', async () => {
    expect(await get('/orders/bad-prepare')).toBe(200);
    expect((await deferred()).filter(({ name }) => name === 'Receipt')).toMatchObject([
      { outcome: 'failed', error: expect.stringMatching(/reading 'id'/) as string },
    ]);
  });

  it('keeps 100 concurrent requests apart, deferred work inside deferred work included', async () => {
    await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        fetch(`${running.url}/orders/context/${i}`, { headers: { 'x-request-id': `r-${i}` } }),
      ),
    );
    await settle(running.app);
    expect(log.details).toHaveLength(100);
    for (const { id, requestId, inner } of log.details) {
      expect([requestId, inner]).toEqual([`r-${String(id)}`, `r-${String(id)}`]);
    }
  });

  it('shows its counters in the snapshot', async () => {
    await get('/orders/ordered');
    const stats = deferrer.stats();
    expect(stats).toMatchObject({ accepted: 5, completed: 5, failed: 0, dropped: 0, pending: 0, running: 0 });
  });
});
