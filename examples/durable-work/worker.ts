// The second process: no HTTP, the same class, and the module with a worker.
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { PerfModule } from 'nestjs-perf';
import { bullmqStore } from 'nestjs-perf/bullmq';
import { SendReceipt } from './orders.js';

const url = process.env['REDIS_URL'] ?? 'redis://localhost:6379';

@Module({
  imports: [
    PerfModule.forRoot({
      defer: { store: bullmqStore({ connection: url, queue: 'receipts', worker: { concurrency: 5 } }) },
    }),
  ],
  providers: [SendReceipt],
})
class WorkerModule {}

const app = await NestFactory.createApplicationContext(WorkerModule, { logger: ['warn', 'error'] });
app.enableShutdownHooks();
process.send?.('ready');
