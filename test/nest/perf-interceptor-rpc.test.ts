import type { AddressInfo, Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import {
  Controller,
  Get,
  Inject,
  Module,
  UseInterceptors,
  type INestApplicationContext,
  type Provider,
} from '@nestjs/common';
import { APP_INTERCEPTOR, NestFactory } from '@nestjs/core';
import {
  ClientProxyFactory,
  EventPattern,
  MessagePattern,
  Payload,
  RpcException,
  Transport,
  type ClientProxy,
  type MicroserviceOptions,
} from '@nestjs/microservices';
import { concatMap, from, lastValueFrom, toArray, type Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { PerfInterceptor, PerfModule, PerfService, SkipPerf, type WorkRecord } from '../../src/index.js';
import { memorySink, settle, type MemorySink } from '../../src/entries/testing.js';
import { byNest, startApp } from '../fixtures/app.js';

interface Job {
  id: number;
  parts: number;
}

@Controller()
@UseInterceptors(PerfInterceptor)
class MeasuredController {
  constructor(@Inject(PerfService) private readonly perf: PerfService) {}

  @Get('http')
  http() {
    return 'http';
  }
  @MessagePattern({ cmd: 'sum' })
  sum(@Payload() numbers: number[]) {
    return numbers.reduce((sum, n) => sum + n, 0);
  }
  @MessagePattern('stream')
  stream(@Payload() { id, parts }: Job): Observable<number> {
    return from(Array.from({ length: parts }, (_, part) => part)).pipe(
      concatMap(async (part) => {
        await delay((id * 7 + part * 3) % 11);
        return this.perf.timed(`part of ${id}`, async () => part);
      }),
    );
  }
  @MessagePattern('fail')
  fail() {
    throw new RpcException('not today');
  }
  @MessagePattern(['price', { cmd: 'price' }])
  price() {
    return 5;
  }
  @EventPattern('happened')
  async happened(@Payload() ms: number) {
    await delay(ms);
  }
  @MessagePattern('skipped')
  @SkipPerf()
  skipped() {
    return 'skipped';
  }
}

@Controller()
class PlainController {
  @MessagePattern('plain')
  plain(@Payload() text: string) {
    return `plain ${text}`;
  }
  @MessagePattern('plain-fail')
  fail() {
    throw new RpcException('plain failure');
  }
}

const controllers = [MeasuredController, PlainController];
const tcp: MicroserviceOptions = { transport: Transport.TCP, options: { host: '127.0.0.1', port: 0 } };

interface Service {
  client: ClientProxy;
  sink: MemorySink;
  app: INestApplicationContext;
  /** Records of work, once there are at least `count`. */
  records(count: number): Promise<WorkRecord[]>;
  close(): Promise<void>;
}

function serviceOf(app: INestApplicationContext, server: Server, sink: MemorySink): Service {
  const { port } = server.address() as AddressInfo;
  const client = ClientProxyFactory.create({ transport: Transport.TCP, options: { host: '127.0.0.1', port } });
  const works = () => sink.records.filter((record) => record.kind === 'work').sort((a, b) => a.startedAt - b.startedAt);
  return {
    client,
    sink,
    app,
    async records(count) {
      // An event has no answer to wait for.
      await expect.poll(async () => (await settle(app), works().length)).toBeGreaterThanOrEqual(count);
      return works();
    },
    async close() {
      await client.close();
      await app.close();
    },
  };
}

async function startMicroservice(providers: Provider[] = []): Promise<Service> {
  const sink = memorySink();
  @Module({ imports: [PerfModule.forRoot({ sinks: [sink] })], controllers, providers })
  class ServiceModule {}
  const app = await NestFactory.createMicroservice<MicroserviceOptions>(ServiceModule, { ...tcp, logger: false });
  await app.listen();
  return serviceOf(app, app.unwrap<Server>(), sink);
}

const ask = <T>(service: Service, pattern: unknown, data: unknown): Promise<T> =>
  lastValueFrom(service.client.send<T>(pattern, data));
const brief = (records: WorkRecord[]) => records.map(({ type, name, outcome }) => [type, name, outcome]);

describe('a TCP microservice', () => {
  it('works untouched where nobody asks for PerfInterceptor, and no record is written', async () => {
    const service = await startMicroservice();
    expect(await ask(service, 'plain', 'text')).toBe('plain text');
    await expect(ask(service, 'plain-fail', '')).rejects.toMatchObject({ message: 'plain failure' });
    expect(await service.records(0)).toEqual([]);
    await service.close();
  });

  it('has messages, events and failures measured with PerfInterceptor, once each', async () => {
    const service = await startMicroservice();
    expect(await ask(service, { cmd: 'sum' }, [1, 2, 3])).toBe(6);
    await expect(ask(service, 'fail', '')).rejects.toMatchObject({ message: 'not today' });
    expect(await ask(service, 'skipped', '')).toBe('skipped');
    await lastValueFrom(service.client.emit('happened', 5), { defaultValue: undefined });
    const records = await service.records(3);
    const { routes } = service.app.get(PerfService).snapshot();
    await service.close();
    expect(brief(records)).toEqual([
      ['message', 'MeasuredController.sum', 'completed'],
      ['message', 'MeasuredController.fail', 'failed'],
      ['event', 'MeasuredController.happened', 'completed'],
    ]);
    expect(records[2]!.durationMs).toBeGreaterThanOrEqual(4);
    expect(routes.map(({ route, count, errors, inFlight }) => [route, count, errors, inFlight])).toEqual([
      ['MeasuredController.sum', 1, 0, 0],
      ['MeasuredController.fail', 1, 1, 0],
      ['MeasuredController.happened', 1, 0, 0],
    ]);
  });

  it('has one row for a handler of several patterns', async () => {
    const service = await startMicroservice();
    for (const pattern of [{ cmd: 'price' }, 'price']) expect(await ask(service, pattern, '')).toBe(5);
    const records = await service.records(2);
    await service.close();
    const row = ['message', 'MeasuredController.price', 'completed'];
    expect(brief(records)).toEqual([row, row]);
  });

  it('has messages measured once where PerfInterceptor is global as well', async () => {
    const service = await startMicroservice([{ provide: APP_INTERCEPTOR, useClass: PerfInterceptor }]);
    expect(await ask(service, 'plain', 'text')).toBe('plain text');
    expect(await ask(service, { cmd: 'sum' }, [1, 2])).toBe(3);
    const records = await service.records(2);
    await service.close();
    expect(records.map(({ name }) => name)).toEqual(['PlainController.plain', 'MeasuredController.sum']);
  });

  it('never mixes the contexts of streams that run at the same time', async () => {
    const service = await startMicroservice();
    const jobs: Job[] = Array.from({ length: 40 }, (_, id) => ({ id: id + 1, parts: 2 + (id % 4) }));
    const streams = await Promise.all(
      jobs.map((job) => lastValueFrom(service.client.send<number>('stream', job).pipe(toArray()))),
    );
    const records = await service.records(jobs.length);
    await service.close();
    expect(streams.map((parts) => parts.length)).toEqual(jobs.map(({ parts }) => parts));
    const made = records.map(({ upstream }) => upstream!.map(({ target, calls }) => `${target}: ${calls}`).join());
    expect(made.toSorted()).toEqual(jobs.map(({ id, parts }) => `part of ${id}: ${parts}`).toSorted());
  });
});

describe.each(byNest('express'))('a hybrid application on %s', (adapter) => {
  it('counts HTTP once although the handler has PerfInterceptor, and messages beside it', async () => {
    const running = await startApp(adapter, {
      metadata: { controllers },
      beforeInit: async (app) => {
        app.connectMicroservice<MicroserviceOptions>(tcp, { inheritAppConfig: true });
        await app.startAllMicroservices();
      },
    });
    const [microservice] = running.app.getMicroservices();
    const service = serviceOf(running.app, microservice!.unwrap<Server>(), running.sink);
    expect(await (await fetch(`${running.url}/http`)).text()).toBe('http');
    expect(await ask(service, { cmd: 'sum' }, [4, 5])).toBe(9);
    const records = await service.records(1);
    const requests = await running.requests();
    await service.close();
    expect(brief(records)).toEqual([['message', 'MeasuredController.sum', 'completed']]);
    expect(requests.map(({ handler }) => handler)).toEqual(['MeasuredController.http']);
  });
});
