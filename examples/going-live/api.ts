// One release in a process of its own: `<slowness> <directory for recordings>`. Records when its parent says so.
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { PerfService } from 'nestjs-perf';
import { AppModule } from './app.module.js';

const app = await NestFactory.create(AppModule, new FastifyAdapter(), { logger: ['error', 'fatal'] });
await app.listen(0, '127.0.0.1');
const { recording } = app.get(PerfService);

process.on('message', (message: 'record' | 'stop') => {
  if (message === 'record') recording.start({ forMs: 60_000 });
  else void recording.stop().then((recorded) => process.send!(recorded));
});
process.once('disconnect', () => void app.close());
process.send!(await app.getUrl());
