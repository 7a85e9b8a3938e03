// The same from an ECMAScript module: one program for workers, whatever the format of the application.
import assert from 'node:assert/strict';
import { NestFactory } from '@nestjs/core';
import { PerfModule } from 'nestjs-perf';
import { offload, Offloader } from 'nestjs-perf/offload';
import common from '@nestjs/common';
import offloadModule from '../dist/offload/offload.module.js';
import reports from '../dist/offload/reports.js';

const module = new URL('../dist/offload/offload.module.js', import.meta.url);
class AppModule {}
common.Module({
  imports: [PerfModule.forRoot({ extensions: [offload({ module, warm: 1 })] }), offloadModule.OffloadModule],
})(AppModule);

const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
assert.equal(app.get(Offloader).stats().threads, 1);
assert.equal((await app.get(reports.Reports).render('June')).isMainThread, false);
await app.close();
assert.equal(app.get(Offloader).stats().threads, 0);
