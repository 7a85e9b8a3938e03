import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Get, Module, UseInterceptors } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  ClientProxyFactory,
  MessagePattern,
  Payload,
  RpcException,
  Transport,
  type MicroserviceOptions,
} from '@nestjs/microservices';
import { WsAdapter } from '@nestjs/platform-ws';
import { MessageBody, SubscribeMessage, WebSocketGateway, type WsResponse } from '@nestjs/websockets';
import { lastValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { PerfInterceptor, PerfModule } from '../../src/index.js';
import { prometheusSink } from '../../src/entries/prometheus.js';
import { settle } from '../../src/entries/testing.js';
import { either, startApp } from '../fixtures/app.js';
import { parseExposition, samplesOf, valueOf, type Family } from '../fixtures/exposition.js';

@WebSocketGateway()
@UseInterceptors(PerfInterceptor)
class EchoGateway {
  @SubscribeMessage('echo')
  echo(@MessageBody() data: unknown): WsResponse<unknown> {
    return { event: 'echo', data };
  }
}

@Controller()
@UseInterceptors(PerfInterceptor)
class SumsController {
  @MessagePattern({ cmd: 'sum' })
  sum(@Payload() numbers: number[]): number {
    return numbers.reduce((sum, n) => sum + n, 0);
  }
  @MessagePattern('fail')
  fail(): void {
    throw new RpcException('not today');
  }
}

@Controller()
class HttpController {
  @Get('slow')
  async slow(): Promise<string> {
    await delay(60);
    return 'slow';
  }
  @Get('fast')
  fast(): string {
    return 'fast';
  }
}

const HANDLERS = 'perf_handler_duration_seconds_count';
const REQUESTS = 'http_server_request_duration_seconds_count';

async function scrape(url: string): Promise<Map<string, Family>> {
  return parseExposition(await (await fetch(url)).text());
}

describe.each(either('express'))('prometheusSink on %s', (adapter) => {
  it('keeps messages of a WebSocket apart from HTTP requests', async () => {
    const running = await startApp(adapter, {
      perf: { sinks: [prometheusSink()] },
      metadata: { providers: [EchoGateway], controllers: [HttpController] },
      beforeInit: (app) => void app.useWebSocketAdapter(new WsAdapter(app)),
    });
    const socket = new WebSocket(running.url.replace('http', 'ws'));
    await once(socket, 'open');
    socket.send(JSON.stringify({ event: 'echo', data: 1 }));
    await once(socket, 'message');
    await (await fetch(`${running.url}/fast`)).text();
    await running.requests();
    const families = await scrape(`${running.url}/metrics`);
    expect(valueOf(families, HANDLERS, { kind: 'socket', handler: 'EchoGateway.echo', status: '200' })).toBe(1);
    expect(samplesOf(families, HANDLERS)).toHaveLength(1);
    const routes = samplesOf(families, REQUESTS).map(({ labels }) => labels['http_route']);
    expect(routes).toContain('/fast');
    expect(routes).not.toContain('echo');
    const methods = samplesOf(families, 'http_server_active_requests').map(
      ({ labels }) => labels['http_request_method'],
    );
    expect(methods).toEqual(['GET']);
    socket.terminate();
    await running.close();
  });

  it('counts requests that took longer than each of `latency.overMs`', async () => {
    const running = await startApp(adapter, {
      perf: { sinks: [prometheusSink()], latency: { overMs: [40, 30_000] } },
      metadata: { controllers: [HttpController] },
    });
    for (const path of ['slow', 'slow', 'fast']) await (await fetch(`${running.url}/${path}`)).text();
    const records = await running.requests();
    const families = await scrape(`${running.url}/metrics`);
    const over = (route: string, ms: string): number =>
      valueOf(families, 'perf_http_requests_over_total', {
        http_request_method: 'GET',
        http_route: route,
        le_ms: ms,
      });
    expect(over('/slow', '40')).toBe(2);
    expect(over('/slow', '30000')).toBe(0);
    expect(over('/fast', '40')).toBe(records.filter((r) => r.route === '/fast' && r.durationMs > 40).length);
    await running.close();
  });

  it('serves a port of its own and not the application’s, until the application has closed', async () => {
    const sink = prometheusSink({ port: 0, labels: { team: 'shop' } });
    const running = await startApp(adapter, { perf: { sinks: [sink] }, metadata: { controllers: [HttpController] } });
    expect((await fetch(`${running.url}/metrics`)).status).toBe(404);
    await running.requests();
    const url = `http://127.0.0.1:${sink.port}/metrics`;
    expect(valueOf(await scrape(url), REQUESTS, { http_response_status_code: '404', team: 'shop' })).toBe(1);
    await running.requests();
    // The scrapes are no requests of the application.
    expect(samplesOf(await scrape(url), REQUESTS)).toHaveLength(1);
    await running.close();
    expect(sink.port).toBeNull();
    await expect(fetch(url)).rejects.toThrow('fetch failed');
  });
});

describe('prometheusSink in a microservice', () => {
  it('has a port of its own, and the messages by handler and status', async () => {
    const sink = prometheusSink({ port: 0 });
    @Module({ imports: [PerfModule.forRoot({ sinks: [sink] })], controllers: [SumsController] })
    class ServiceModule {}
    const app = await NestFactory.createMicroservice<MicroserviceOptions>(ServiceModule, {
      transport: Transport.TCP,
      options: { host: '127.0.0.1', port: 0 },
      logger: false,
    });
    await app.listen();
    const { port } = app.unwrap<Server>().address() as AddressInfo;
    const client = ClientProxyFactory.create({ transport: Transport.TCP, options: { host: '127.0.0.1', port } });
    expect(await lastValueFrom(client.send<number>({ cmd: 'sum' }, [1, 2]))).toBe(3);
    await expect(lastValueFrom(client.send('fail', ''))).rejects.toMatchObject({ message: 'not today' });
    await settle(app);
    const families = await scrape(`http://127.0.0.1:${sink.port}/metrics`);
    expect(valueOf(families, HANDLERS, { kind: 'message', handler: 'SumsController.sum', status: '200' })).toBe(1);
    expect(valueOf(families, HANDLERS, { kind: 'message', handler: 'SumsController.fail', status: '500' })).toBe(1);
    expect(samplesOf(families, REQUESTS)).toEqual([]);
    await client.close();
    await app.close();
  });
});
