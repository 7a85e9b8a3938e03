import { once } from 'node:events';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { PassThrough, type Writable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type ArgumentsHost,
  Catch,
  Controller,
  type ExceptionFilter,
  Get,
  Inject,
  Injectable,
  Req,
  Res,
  Scope,
  StreamableFile,
  UseFilters,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { of } from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Deferrer, DeferWork, DurableWork, type DeferredWork, type DeferOptions } from '../../src/index.js';
import { DeferEngine } from '../../src/defer/defer-engine.js';
import { MemoryPlace, MemoryStore } from '../unit/contract/memory-store.js';
import { adapters } from '../fixtures/app.js';
import { temporaryFolder } from '../fixtures/disk.js';
import { RawClient } from '../fixtures/socket.js';
import { until } from '../fixtures/until.js';
import { startDeferring } from '../fixtures/works.js';

/** What happened, in order; and what holds a handler. */
@Injectable()
class Log {
  readonly lines: string[] = [];
  entered = false;
  clientLeft = false;
  open = (): void => {};
  readonly gate = new Promise<void>((resolve) => (this.open = resolve));
}

@Injectable()
@DurableWork()
class Receipt implements DeferredWork<string> {
  constructor(@Inject(Log) private readonly log: Log) {}
  run(data: string): void {
    this.log.lines.push(`receipt ${data}`);
  }
}

@Injectable()
class FileReceipt implements DeferredWork {
  constructor(@Inject(Log) private readonly log: Log) {}
  run(): void {
    this.log.lines.push('receipt of a file');
  }
}

const TENANT = 'tenant';
const tenant = {
  provide: TENANT,
  scope: Scope.REQUEST,
  inject: [Log],
  useFactory: async (log: Log): Promise<string> => {
    log.entered = true;
    await log.gate;
    return 'acme';
  },
};

@Injectable({ scope: Scope.REQUEST })
class TenantReceipt implements DeferredWork {
  constructor(
    @Inject(Log) private readonly log: Log,
    @Inject(TENANT) private readonly tenantName: string,
  ) {}
  run(): void {
    this.log.lines.push(`receipt of ${this.tenantName}`);
  }
}

@Catch()
class AnswerAnyway implements ExceptionFilter {
  constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost) {}
  catch(_: unknown, host: ArgumentsHost): void {
    this.host.httpAdapter.reply(host.switchToHttp().getResponse(), 'forgiven', 200);
  }
}

@Controller()
class OrdersController {
  constructor(
    @Inject(Log) private readonly log: Log,
    @Inject(Deferrer) private readonly deferrer: Deferrer,
  ) {}

  private async outliveClient(request: unknown): Promise<void> {
    const { raw, socket } = request as { raw?: { socket: Socket }; socket: Socket };
    this.log.entered = true;
    await once(raw?.socket ?? socket, 'close');
    this.log.clientLeft = true;
    await this.log.gate;
    this.log.lines.push('the handler ends');
  }

  @Get('fails')
  async fails(@Req() request: unknown) {
    this.deferrer.defer(() => this.log.lines.push('deferred'));
    await this.outliveClient(request);
    throw new Error('payment declined');
  }

  @Get('succeeds')
  @DeferWork(Receipt)
  @DeferWork(Receipt, { durable: true })
  async succeeds(@Req() request: unknown) {
    await this.outliveClient(request);
    return 'o-1';
  }

  /** Its stream has sent nothing when the client leaves. */
  @Get('file')
  @DeferWork(FileReceipt)
  file(@Req() request: unknown) {
    void this.outliveClient(request);
    return new StreamableFile(new PassThrough());
  }

  @Get('late-file')
  @DeferWork(FileReceipt)
  lateFile(@Req() request: unknown, @Res() response: { raw?: Writable } & Writable): void {
    void this.outliveClient(request).then(() => new PassThrough().pipe(response.raw ?? response));
  }

  @Get('streams')
  @DeferWork(Receipt)
  async streams(@Req() request: unknown) {
    await this.outliveClient(request);
    return of('o-1', 'o-2');
  }
}

@Controller()
class ForgivenController {
  @Get('forgiven')
  @UseFilters(AnswerAnyway)
  @DeferWork(TenantReceipt)
  forgiven(): never {
    throw new Error('out of stock');
  }
}

describe.each(adapters)('closing on %s while a handler outlives its client', (adapter) => {
  afterEach(() => void vi.restoreAllMocks());

  /** Resolves when the client has left and the application drains. */
  async function closeDuring(path: string, defer: DeferOptions = {}) {
    const place = new MemoryPlace();
    const store = new MemoryStore(place, false, { path: join(temporaryFolder(), 'spill'), maxBytes: 1024 ** 2 });
    const metadata = { controllers: [OrdersController], providers: [Log, Receipt, FileReceipt] };
    const { app, port, deferrer } = await startDeferring(adapter, metadata, { store, ...defer });
    const log = app.get(Log);
    const client = await RawClient.open(port);
    client.get(path);
    await until('the handler to start', () => log.entered);
    client.leave();
    await until('the client to be gone', () => log.clientLeft);
    const drain = vi.spyOn(DeferEngine.prototype, 'drain');
    const closing = app.close();
    await until('the application to drain', () => drain.mock.calls.length > 0);
    return { log, place, closing, deferrer };
  }

  it('what it has deferred does not run when it fails', async () => {
    const { log, closing, deferrer } = await closeDuring('/fails');
    log.open();
    await closing;
    expect(log.lines).toEqual(['the handler ends']);
    expect(deferrer.stats()).toMatchObject({ completed: 0, dropped: 0, pending: 0 });
  });

  it('its work runs, or is stored, when it succeeds', async () => {
    const { log, place, closing, deferrer } = await closeDuring('/succeeds');
    log.open();
    await closing;
    expect(log.lines).toEqual(['the handler ends', 'receipt o-1']);
    expect(place.waiting.map(({ items }) => items[0]!.data)).toEqual(['o-1']);
    expect(deferrer.stats()).toMatchObject({ completed: 2, stored: 1, dropped: 0, pending: 0 });
  });

  it('an observable that Nest does not listen to any more is not waited for', async () => {
    const { log, closing } = await closeDuring('/streams', { drainTimeoutMs: 120_000 });
    log.open();
    await closing;
    expect(log.lines).toEqual(['the handler ends']);
  });

  it.each(['/file', '/late-file'])(
    'a stream that it has answered with is not waited for: %s',
    { timeout: 20_000 },
    async (path) => {
      const { log, closing } = await closeDuring(path, { drainTimeoutMs: 120_000 });
      log.open();
      await closing;
      expect(log.lines.toSorted()).toEqual(['receipt of a file', 'the handler ends']);
    },
  );

  it('one that has not ended at the deadline counts as successful', async () => {
    const { log, closing } = await closeDuring('/fails', { drainTimeoutMs: 50 });
    await closing;
    expect(log.lines).toEqual(['deferred']);
    log.open();
  });
});

describe.each(adapters)('request-scoped work that the final status decides, on %s', (adapter) => {
  afterEach(() => void vi.restoreAllMocks());

  /** Resolves when its request has been answered, and the work is being made. */
  async function decided() {
    const metadata = { controllers: [ForgivenController], providers: [Log, tenant, TenantReceipt] };
    const { app, url, deferrer } = await startDeferring(adapter, metadata);
    const log = app.get(Log);
    expect(await (await fetch(`${url}/forgiven`)).text()).toBe('forgiven');
    await until('the work to be made', () => log.entered);
    return { app, log, deferrer };
  }

  it('is waited for by idle()', async () => {
    const { log, deferrer } = await decided();
    const idle = deferrer.idle().then(() => log.lines.push('idle'));
    // Who does not wait for it is done some turns later.
    for (let turn = 0; turn < 20; turn++) await nextTurn();
    log.open();
    await idle;
    expect(log.lines).toEqual(['receipt of acme', 'idle']);
  });

  it('is waited for when the application closes', async () => {
    const { app, log, deferrer } = await decided();
    const drain = vi.spyOn(DeferEngine.prototype, 'drain');
    const closing = app.close();
    await until('the application to drain', () => drain.mock.calls.length > 0);
    for (let turn = 0; turn < 20; turn++) await nextTurn();
    log.open();
    await closing;
    expect(log.lines).toEqual(['receipt of acme']);
    expect(deferrer.stats()).toMatchObject({ completed: 1, dropped: 0, pending: 0 });
  });
});
