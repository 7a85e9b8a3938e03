// Work that no HTTP request starts, each by its real package: a cron job, a processor, a message over TCP, a gateway, a GraphQL
// operation. Each blocks the loop for 100 ms and calls Redis three times, several times over. REDIS_PORT: a server on this machine.
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { BullModule, getQueueToken, Processor, WorkerHost } from '@nestjs/bullmq';
import { Controller, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { GraphQLModule, Query, Resolver } from '@nestjs/graphql';
import { MercuriusDriver, type MercuriusDriverConfig } from '@nestjs/mercurius';
import { ClientProxyFactory, MessagePattern, Transport } from '@nestjs/microservices';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { WsAdapter } from '@nestjs/platform-ws';
import { Cron, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import type { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { lastValueFrom } from 'rxjs';
import { Measured, PerfModule, PerfService, type BlockRecord, type WorkRecord } from 'nestjs-perf';
import { memorySink, settle } from 'nestjs-perf/testing';
import { WebSocket } from 'ws';

const TIMES = 5;
const BLOCK_MS = 100;
const QUEUE = `work-${process.pid}`;
const connection = { host: '127.0.0.1', port: Number(process.env['REDIS_PORT']) };
const redis = new Redis(connection);
const target = `redis ${connection.host}:${connection.port}`;

async function work(): Promise<string> {
  await redis.get('a');
  const end = performance.now() + BLOCK_MS;
  while (performance.now() < end);
  await redis.get('b');
  await redis.get('c');
  return 'done';
}

@Injectable()
@Measured()
class ReportsJob {
  /** Until its turn has come it blocks nobody. */
  mayWork = false;
  @Cron('* * * * * *', { name: 'reports' })
  async rebuild(): Promise<void> {
    if (this.mayWork) await work();
  }
}

@Measured()
@Processor(QUEUE)
class MailProcessor extends WorkerHost {
  process(): Promise<string> {
    return work();
  }
}

/** These are measured by `work: true` alone. */
@Controller()
class MessagesController {
  @MessagePattern('price')
  price(): Promise<string> {
    return work();
  }
}

@WebSocketGateway()
class BidsGateway {
  @SubscribeMessage('bid')
  async bid(): Promise<object> {
    return { event: 'bid', data: await work() };
  }
}

@Resolver()
class OrdersResolver {
  @Query('order')
  order(): Promise<string> {
    return work();
  }
}

const sink = memorySink();

@Module({
  imports: [
    PerfModule.forRoot({ sinks: [sink], work: true }),
    ScheduleModule.forRoot(),
    BullModule.forRoot({ connection }),
    BullModule.registerQueue({ name: QUEUE }),
    GraphQLModule.forRoot<MercuriusDriverConfig>({ driver: MercuriusDriver, typeDefs: 'type Query { order: String }' }),
  ],
  controllers: [MessagesController],
  providers: [ReportsJob, MailProcessor, BidsGateway, OrdersResolver],
})
class AppModule {}

const app = await NestFactory.create(AppModule, new FastifyAdapter(), { logger: ['error', 'warn'] });
app.useWebSocketAdapter(new WsAdapter(app));
const tcp = { transport: Transport.TCP, options: { host: '127.0.0.1', port: 0 } } as const;
app.connectMicroservice(tcp, { inheritAppConfig: true });
await app.startAllMicroservices();
await app.listen(0, '127.0.0.1');
const url = await app.getUrl();
const { port } = app.getMicroservices()[0]!.unwrap<Server>().address() as AddressInfo;
const client = ClientProxyFactory.create({ transport: Transport.TCP, options: { host: '127.0.0.1', port } });
const queue = app.get<Queue>(getQueueToken(QUEUE));
const socket = new WebSocket(url.replace('http', 'ws'));
await once(socket, 'open');

const entries: Record<string, () => Promise<unknown>> = {
  'queue MailProcessor.process': () => queue.add('mail', {}),
  'message MessagesController.price': () => lastValueFrom(client.send('price', {})),
  'socket BidsGateway.bid': async () => {
    socket.send(JSON.stringify({ event: 'bid', data: {} }));
    await once(socket, 'message');
  },
  'graphql OrdersResolver.order': async () => {
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ query: '{ order }' });
    const response = await fetch(`${url}/graphql`, { method: 'POST', headers, body });
    assert.deepEqual(await response.json(), { data: { order: 'done' } });
  },
};
const named = (kind: string): WorkRecord[] =>
  sink.records.filter((one): one is WorkRecord => one.kind === 'work' && `${one.type} ${one.name}` === kind);

for (const [kind, run] of Object.entries(entries)) {
  for (let i = 1; i <= TIMES; i++) {
    await run();
    for (; named(kind).length < i; await delay(5)) await settle(app);
  }
}
const CRON = 'cron ReportsJob.rebuild';
const idle = named(CRON).length;
app.get(ReportsJob).mayWork = true;
const worked = (): WorkRecord[] => named(CRON).filter(({ durationMs }) => durationMs >= BLOCK_MS);
for (; worked().length < TIMES; await delay(50)) await settle(app);
assert.ok(named(CRON).length >= idle + TIMES);

/** A busy machine takes the core away from some blocks that short: those have no name, and all others have the right one. */
const blocks = sink.records.filter((one): one is BlockRecord => one.kind === 'block' && one.request !== null);
const shares: string[] = [];
for (const kind of [...Object.keys(entries), CRON]) {
  const [, name] = kind.split(' ');
  const records = (kind === CRON ? worked() : named(kind)).slice(0, TIMES);
  let known = 0;
  for (const record of records) {
    const { outcome, overlapped, upstream, blockedMs, startedAt, durationMs, time } = record;
    const calls = upstream?.map((use) => [use.target, use.calls]).filter(([to]) => to === target);
    assert.deepEqual([kind, outcome, overlapped, calls], [kind, 'completed', false, [[target, 3]]]);
    const { upstreamMs, busyMs, idleMs } = time!;
    assert.ok(Math.abs(upstreamMs + busyMs + idleMs - durationMs) < 0.01, `${kind}: the parts are the whole`);
    const own = blocks.filter((block) => block.startedAt >= startedAt && block.startedAt < startedAt + durationMs);
    for (const { request, location, durationMs: blockMs } of own) {
      assert.equal(request!.handler, name, `${kind}: a block of ${blockMs} ms at ${location}`);
      assert.match(location ?? '', /work\.[jt]s:\d+/);
    }
    if (own.length > 0) assert.ok(blockedMs >= BLOCK_MS * 0.9 && blockedMs <= durationMs, `${kind}: ${blockedMs} ms`);
    known += own.length;
  }
  shares.push(`${name} ${known}/${TIMES}`);
}

// The cron job dies: what its scheduler stops is a finding after three of its periods.
const finding = (): string | undefined =>
  app
    .get(PerfService)
    .snapshot()
    .findings.find(({ kind }) => kind === 'missed-runs')?.text;
assert.equal(finding(), undefined);
await app.get(SchedulerRegistry).getCronJob('reports').stop();
while (finding() === undefined) await delay(100);
assert.match(finding()!, /^ReportsJob\.rebuild runs every [1-3]\.\d s, and has not started for \d+(?:\.\d)? s$/);
socket.terminate();
await client.close();
await queue.obliterate({ force: true });
await app.close();
redis.disconnect();
console.log(`records exact, blocks named: ${shares.join(', ')}`);
