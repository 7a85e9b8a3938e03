// `nestjs-perf/offload` as a CommonJS application has it: modules by `require.resolve()`, threads from the packed program.
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { pathToFileURL } from 'node:url';
import { Controller, Get, Inject, Module } from '@nestjs/common';
import { NestFactory, type AbstractHttpAdapter } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { PerfModule, PerfService } from 'nestjs-perf';
import { offload, Offloader } from 'nestjs-perf/offload';
import { OffloadModule } from './offload.module';
import { Reports } from './reports';

@Controller()
class ReportsController {
  constructor(@Inject(Reports) private readonly reports: Reports) {}

  @Get('render')
  render() {
    return this.reports.render('May');
  }

  @Get('hang')
  hang() {
    return this.reports.hang();
  }

  @Get('fail')
  fail() {
    return this.reports.fail();
  }
}

@Module({
  imports: [
    PerfModule.forRoot({
      extensions: [offload({ module: require.resolve('./offload.module'), threads: 1 })],
    }),
    OffloadModule,
  ],
  controllers: [ReportsController],
})
class AppModule {}

async function serve(adapter: AbstractHttpAdapter): Promise<void> {
  const app = await NestFactory.create(AppModule, adapter, { logger: false });
  await app.listen(0, '127.0.0.1');
  const get = async (path: string) => fetch(`${await app.getUrl()}/${path}`);
  const rendered = await (await get('render')).json();
  assert.deepEqual(rendered, { month: 'May', pages: 12, isMainThread: false });
  assert.equal((await get('hang')).status, 504);
  assert.equal((await get('fail')).status, 409);
  assert.equal(await app.get(Offloader).run(pathToFileURL(require.resolve('./square')), 7), 49);
  const { offload } = app.get(PerfService).snapshot();
  assert.equal(offload?.done, 2);
  assert.equal(offload?.timedOut, 1);
  await app.close();
}

void serve(new FastifyAdapter()).then(() => serve(new ExpressAdapter()));
