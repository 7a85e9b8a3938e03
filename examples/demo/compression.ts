// The flight feed with and without compression, side by side: bytes on the wire and how long visitors wait.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { Controller, Get, Module, type DynamicModule, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { PerfModule, SharedResponse } from 'nestjs-perf';
import { flightFeed } from './flight-feed.js';
import { table } from './table.js';

@Controller('flights')
class PlainFeedController {
  @Get()
  feed() {
    return flightFeed();
  }
}

@Controller('flights')
class SharedFeedController {
  @Get()
  @SharedResponse({ ttlMs: 15_000 })
  feed() {
    return flightFeed();
  }
}

interface Visits {
  bytes: number;
  p50Ms: number;
  p99Ms: number;
}

/** Visitors that come at the same time, and how often each polls. */
const VISITORS = 20;
const POLLS = 10;

/** A table for the console. Starts and closes applications of its own; the visitors are a process of their own. */
export async function compressionReport(clientScript: string): Promise<string> {
  const rows: (string | number)[][] = [];
  for (const [name, controller, imports] of [
    ['without', PlainFeedController, []],
    ['PerfModule.forRoot()', PlainFeedController, [PerfModule.forRoot({ sinks: [] })]],
    ['… and @SharedResponse({ ttlMs: 15_000 })', SharedFeedController, [PerfModule.forRoot({ sinks: [] })]],
  ] as const) {
    const { bytes, p50Ms, p99Ms } = await visit(clientScript, controller, imports);
    rows.push([name, bytes.toLocaleString('en'), p50Ms.toFixed(1), p99Ms.toFixed(1)]);
  }
  return table([`GET /flights, ${VISITORS} visitors at once`, 'bytes a poll', 'p50 ms', 'p99 ms'], rows);
}

async function visit(script: string, controller: Type, imports: readonly DynamicModule[]): Promise<Visits> {
  @Module({ imports: [...imports], controllers: [controller] })
  class FeedModule {}
  const app = await NestFactory.create<NestFastifyApplication>(FeedModule, new FastifyAdapter(), { logger: ['error'] });
  await app.listen(0, '127.0.0.1');
  try {
    const { port } = app.getHttpServer().address() as AddressInfo;
    const client = fork(script, [String(port), String(VISITORS), String(POLLS)]);
    const [visits] = (await once(client, 'message')) as [Visits];
    return visits;
  } finally {
    await app.close();
  }
}
