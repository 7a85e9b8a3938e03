// Serves one request that blocks the event loop; prints, as a line of JSON, how the block was recorded.
import 'reflect-metadata';
import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Get, Module, Param } from '@nestjs/common';
import { NestFactory, type AbstractHttpAdapter } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { PerfModule, type PerfRecord } from 'nestjs-perf';
import { memorySink, settle } from 'nestjs-perf/testing';
import { renderRows } from './render.js';

const [adapter, ms] = process.argv.slice(2);
const sink = memorySink();

@Controller('reports')
class ReportsController {
  @Get(':ms')
  async render(@Param('ms') ms: string): Promise<{ rows: number }> {
    // As after a query.
    await delay(5);
    return { rows: renderRows(Number(ms)) };
  }
}

@Module({ imports: [PerfModule.forRoot({ sinks: [sink] })], controllers: [ReportsController] })
class AppModule {}

async function main(): Promise<void> {
  const platform: AbstractHttpAdapter = adapter === 'express' ? new ExpressAdapter() : new FastifyAdapter();
  const app = await NestFactory.create(AppModule, platform, { logger: ['error', 'warn'] });
  await app.listen(0, '127.0.0.1');
  const response = await fetch(`${await app.getUrl()}/reports/${ms}`);
  await response.text();
  await settle(app);
  const isBlock = (record: PerfRecord) => record.kind === 'block' && record.durationMs >= Number(ms) * 0.9;
  console.log(JSON.stringify(sink.records.filter(isBlock)));
  await app.close();
}

void main();
