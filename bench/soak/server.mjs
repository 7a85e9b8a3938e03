// The application under soak: every feature on, on Fastify, with a sink that counts and sinks that misbehave.
// `node server.mjs <redis port> <spill file>`; answers { type: 'sample' | 'finish' } over IPC.
import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { setTimeout as delay } from 'node:timers/promises';
import {
  Controller,
  Get,
  Inject,
  Injectable,
  InternalServerErrorException,
  Post,
  Req,
  StreamableFile,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Deferrer, DeferWork, Experiments, loggerSink, PerfModule, PerfService, staticGates } from 'nestjs-perf';
import { bullmqStore } from 'nestjs-perf/bullmq';
import { prometheusSink } from 'nestjs-perf/prometheus';
import { settle } from 'nestjs-perf/testing';
import { decorate, decorateMethod } from '../overhead/application.mjs';
import { CountingSink, failingSink, stallingSink } from './sinks.mjs';

const [redisPort, spillPath] = process.argv.slice(2);
const BLOCK_MS = 80;
const FEED = Array.from({ length: 400 }, (_, id) => ({
  id,
  callsign: `FL${id}`,
  at: [id / 3, id / 7],
  up: id % 2 === 0,
}));
const DOWNLOAD = randomBytes(400_000);

/** How often the durable work of order n has run. One array for the whole run: what counts must not grow. */
const ran = new Uint8Array(4_000_000);
let audits = 0;
let thrown = 0;

class SaveOrder {
  prepare({ result }) {
    return { n: result.n };
  }
  run({ n }) {
    ran[n] += 1;
  }
}
decorate(SaveOrder, Injectable());

class SoakController {
  constructor(deferrer, experiments) {
    this.deferrer = deferrer;
    this.experiments = experiments;
  }
  findOne(request) {
    this.deferrer.defer(() => void (audits += 1), { name: 'audit' });
    if (audits % 50 === 0) {
      this.deferrer.defer(() => {
        thrown += 1;
        throw new Error('the audit log is full');
      });
    }
    return { id: request.params.id, fast: this.experiments.check('fast') };
  }
  create(request) {
    return request.body;
  }
  feed() {
    return FEED;
  }
  async waits() {
    await delay(400);
    return 'late';
  }
  download() {
    return new StreamableFile(DOWNLOAD, { type: 'application/octet-stream' });
  }
  fails() {
    throw new InternalServerErrorException();
  }
  block() {
    const end = performance.now() + BLOCK_MS;
    while (performance.now() < end);
    return 'done';
  }
}
decorateMethod(SoakController, 'findOne', Get('users/:id'));
Req()(SoakController.prototype, 'findOne', 0);
decorateMethod(SoakController, 'create', Post('orders'), DeferWork(SaveOrder, { durable: true, attempts: 3 }));
Req()(SoakController.prototype, 'create', 0);
decorateMethod(SoakController, 'feed', Get('feed'));
decorateMethod(SoakController, 'waits', Get('waits'));
decorateMethod(SoakController, 'download', Get('download'));
decorateMethod(SoakController, 'fails', Get('fails'));
decorateMethod(SoakController, 'block', Get('block'));
Inject(Deferrer)(SoakController, undefined, 0);
Inject(Experiments)(SoakController, undefined, 1);
decorate(SoakController, Controller());

const warnings = [];
const logger = { log() {}, debug() {}, verbose() {}, error: () => {}, warn: (message) => remember(String(message)) };
/** The summaries and block lines are many and say nothing about losses: only what the library says about itself is kept. */
function remember(message) {
  if (/lost records|dropped|failed|Redis/.test(message)) warnings.push(message.slice(0, 300));
  if (warnings.length > 2_000) throw new Error('The library repeats itself: 2,000 warnings about losses.');
}

/**
 * What V8 does when memory is short. `gc()` keeps compiled code that nobody needs, and so half an hour of warm-up looks like
 * a leak: megabytes of `code` and `code deopt data` in heap snapshots, and no objects.
 */
async function collectAll() {
  const session = new Session();
  session.connect();
  await session.post('HeapProfiler.collectGarbage');
  session.disconnect();
}

const counting = new CountingSink();
const flaky = failingSink();
const stalling = stallingSink();
const store = bullmqStore({ connection: { host: '127.0.0.1', port: Number(redisPort) }, queue: 'soak', spillPath });
const root = {
  module: class AppModule {},
  imports: [
    PerfModule.forRoot({
      defer: { store, drainTimeoutMs: 30_000 },
      flushTimeoutMs: 10_000,
      resources: { intervalMs: 2_000 },
      experiments: {
        gates: staticGates({ fast: 0.5 }),
        unit: (request) => ({ userId: request.headers['x-user'] ?? 'none' }),
      },
      sinks: [counting, flaky, stalling, loggerSink(), prometheusSink()],
    }),
  ],
  controllers: [SoakController],
  providers: [SaveOrder],
};
const app = await NestFactory.create(root, new FastifyAdapter({ keepAliveTimeout: 3_600_000 }), { logger });
await app.listen(0, '127.0.0.1');
const deferrer = app.get(Deferrer);
const perf = app.get(PerfService);

const answers = {
  /** Taken while no request is under way, twice: finalizers free what the first round found. */
  async sample() {
    await settle(app).catch(() => {});
    await collectAll();
    await delay(20);
    await collectAll();
    const { heapUsed, rss, external, arrayBuffers } = process.memoryUsage();
    const handles = process.getActiveResourcesInfo().filter((name) => name !== 'Timeout' && name !== 'Immediate');
    return {
      heapUsed,
      rss,
      external,
      arrayBuffers,
      handles: handles.length,
      files: readdirSync('/proc/self/fd').length,
      threads: readdirSync('/proc/self/task').length,
      cpuSeconds: process.cpuUsage().user / 1e6 + process.cpuUsage().system / 1e6,
    };
  },
  /** After the load: waits until everything accepted is done, closes, and says all counts. */
  async finish({ accepted }) {
    const deadlineMs = performance.now() + 60_000;
    const missing = () => accepted.filter((n) => ran[n] === 0).length;
    while (missing() > 0 && performance.now() < deadlineMs) await delay(100);
    await deferrer.idle();
    await settle(app);
    const snapshot = perf.snapshot();
    await app.close();
    return {
      routes: snapshot.routes,
      eventLoop: snapshot.eventLoop,
      compression: snapshot.compression,
      defer: deferrer.stats(),
      audits,
      thrown,
      missing: missing(),
      twice: accepted.filter((n) => ran[n] > 1).length,
      counted: counting.counts,
      flaky: flaky.received,
      stalling: stalling.received,
      warnings,
    };
  },
};
process.on('message', async ({ id, type, ...given }) => {
  const answer = await answers[type](given).catch((error) => ({ error: error.stack }));
  process.send({ id, ...answer });
  if (type === 'finish') process.disconnect();
});
process.send({ port: app.getHttpServer().address().port });
