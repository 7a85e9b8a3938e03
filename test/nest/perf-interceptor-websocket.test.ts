import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Get, Inject, UseInterceptors, type Provider } from '@nestjs/common';
import { APP_INTERCEPTOR } from '@nestjs/core';
import { WsAdapter } from '@nestjs/platform-ws';
import { MessageBody, SubscribeMessage, WebSocketGateway, WsException, type WsResponse } from '@nestjs/websockets';
import { concatMap, from, interval, map, type Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { PerfInterceptor, PerfService, type WorkRecord } from '../../src/index.js';
import { settle } from '../../src/entries/testing.js';
import { type Adapter, acrossNests, startApp, type TestApp } from '../fixtures/app.js';

@WebSocketGateway()
class MeasuredGateway {
  constructor(@Inject(PerfService) private readonly perf: PerfService) {}

  @SubscribeMessage('echo')
  @UseInterceptors(PerfInterceptor)
  echo(@MessageBody() data: unknown): WsResponse<unknown> {
    return { event: 'echo', data };
  }
  @SubscribeMessage('parts')
  @UseInterceptors(PerfInterceptor)
  parts(@MessageBody() id: number): Observable<WsResponse<number>> {
    return from([1, 2, 3]).pipe(
      concatMap(async (part) => {
        await delay((id * 5 + part * 3) % 11);
        return this.perf.timed(`part of ${id}`, async () => ({ event: 'part', data: part }));
      }),
    );
  }
  @SubscribeMessage('endless')
  @UseInterceptors(PerfInterceptor)
  endless(): Observable<WsResponse<number>> {
    return interval(5).pipe(map((data) => ({ event: 'tick', data })));
  }
  @SubscribeMessage('fail')
  @UseInterceptors(PerfInterceptor)
  fail() {
    throw new WsException('not today');
  }
  @SubscribeMessage('plain')
  plain(@MessageBody() data: unknown): WsResponse<unknown> {
    return { event: 'plain', data };
  }
}

@Controller()
class HttpController {
  @Get('http')
  @UseInterceptors(PerfInterceptor)
  http() {
    return 'http';
  }
}

const start = (adapter: Adapter, providers: Provider[] = []): Promise<TestApp> =>
  startApp(adapter, {
    metadata: { providers: [MeasuredGateway, ...providers], controllers: [HttpController] },
    beforeInit: (app) => void app.useWebSocketAdapter(new WsAdapter(app)),
  });

async function connect({ url }: TestApp): Promise<WebSocket> {
  const socket = new WebSocket(url.replace('http', 'ws'));
  await once(socket, 'open');
  return socket;
}

const send = (socket: WebSocket, event: string, data: unknown): void => socket.send(JSON.stringify({ event, data }));

/** Resolves with the next `count` messages. */
function answers(socket: WebSocket, count: number): Promise<unknown[]> {
  const seen: unknown[] = [];
  return new Promise((resolve) => {
    socket.on('message', (data: Buffer) => {
      seen.push(JSON.parse(data.toString()));
      if (seen.length === count) resolve(seen);
    });
  });
}

async function recordsOnce(running: TestApp, count: number): Promise<WorkRecord[]> {
  const works = () => running.sink.records.filter((record) => record.kind === 'work');
  await expect.poll(async () => (await settle(running.app), works().length)).toBeGreaterThanOrEqual(count);
  return works();
}

async function end(running: TestApp, ...sockets: WebSocket[]): Promise<void> {
  for (const socket of sockets) socket.terminate();
  await running.close();
}

describe.each(acrossNests('fastify'))('a WebSocket gateway beside %s', (adapter) => {
  it('works untouched where nobody asks for PerfInterceptor, and no record is written', async () => {
    const running = await start(adapter);
    const socket = await connect(running);
    const answered = answers(socket, 1);
    send(socket, 'plain', 'text');
    expect(await answered).toEqual([{ event: 'plain', data: 'text' }]);
    expect(await recordsOnce(running, 0)).toEqual([]);
    await end(running, socket);
  });

  it('has messages and failures measured with PerfInterceptor once each, HTTP as ever', async () => {
    const running = await start(adapter);
    const socket = await connect(running);
    const answered = answers(socket, 1);
    send(socket, 'echo', { text: 'hello' });
    expect(await answered).toEqual([{ event: 'echo', data: { text: 'hello' } }]);
    await recordsOnce(running, 1);
    send(socket, 'fail', null);
    await recordsOnce(running, 2);
    await (await fetch(`${running.url}/http`)).text();
    const requests = await running.requests();
    const records = await recordsOnce(running, 2);
    await end(running, socket);
    expect(records.map(({ type, name, outcome }) => [type, name, outcome])).toEqual([
      ['socket', 'MeasuredGateway.echo', 'completed'],
      ['socket', 'MeasuredGateway.fail', 'failed'],
    ]);
    expect(requests.map(({ handler }) => handler)).toEqual(['HttpController.http']);
  });

  it('has messages measured once where PerfInterceptor is global as well; gateways have global ones since Nest 12', async () => {
    const running = await start(adapter, [{ provide: APP_INTERCEPTOR, useClass: PerfInterceptor }]);
    const socket = await connect(running);
    const answered = answers(socket, 2);
    send(socket, 'plain', null);
    send(socket, 'echo', null);
    await answered;
    const reached =
      process.env['NEST_MAJOR'] === '11' ? ['MeasuredGateway.echo'] : ['MeasuredGateway.echo', 'MeasuredGateway.plain'];
    const names = (await recordsOnce(running, reached.length)).map(({ name }) => name);
    await end(running, socket);
    expect(names.sort()).toEqual(reached);
  });

  it('never mixes the contexts of streams that run at the same time', async () => {
    const running = await start(adapter);
    const sockets = await Promise.all(Array.from({ length: 5 }, () => connect(running)));
    const perSocket = 6;
    const answered = sockets.map((socket) => answers(socket, 3 * perSocket));
    const ids = sockets.flatMap((socket, at) =>
      Array.from({ length: perSocket }, (_, index) => {
        const id = at * perSocket + index + 1;
        send(socket, 'parts', id);
        return id;
      }),
    );
    await Promise.all(answered);
    const records = await recordsOnce(running, ids.length);
    await end(running, ...sockets);
    const made = records.map(({ upstream }) => upstream!.map(({ target, calls }) => `${target}: ${calls}`).join());
    expect(made.toSorted()).toEqual(ids.map((id) => `part of ${id}: 3`).toSorted());
  });

  it('counts a stream that the client leaves as aborted, and shows it in flight until then', async () => {
    const running = await start(adapter);
    const socket = await connect(running);
    const ticking = answers(socket, 2);
    send(socket, 'endless', null);
    await ticking;
    const row = () =>
      running.app
        .get(PerfService)
        .snapshot()
        .routes.find(({ route }) => route === 'MeasuredGateway.endless')!;
    expect(row()).toMatchObject({ count: 0, inFlight: 1 });
    socket.close();
    const [record] = await recordsOnce(running, 1);
    expect(record).toMatchObject({ type: 'socket', name: 'MeasuredGateway.endless', outcome: 'completed' });
    expect(row()).toMatchObject({ count: 1, aborted: 1, inFlight: 0 });
    await end(running, socket);
  });
});
