// npm run example -- hydration: 3 MB from a database become objects. How long does the event loop stand still on the main thread,
// with the rows sent to a worker, and with the whole method in a worker? Needs a Redis: REDIS_URL, else one on port 6379.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { PerfModule } from 'nestjs-perf';
import { offload, Offloader } from 'nestjs-perf/offload';
import { OffloadModule, PullRequests, TeamInsights } from './offload.module.js';

@Module({
  imports: [
    PerfModule.forRoot({
      sinks: [],
      extensions: [offload({ module: new URL('./offload.module.js', import.meta.url), threads: 1, warm: 1 })],
    }),
    OffloadModule,
  ],
})
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error'] });
const pullRequests = app.get(PullRequests);
const insights = app.get(TeamInsights);
const offloader = app.get(Offloader);
await pullRequests.fill();
const file = new URL('./insights.js', import.meta.url);

const ways: readonly [string, () => Promise<unknown>][] = [
  ['on the main thread', () => insights.onTheMainThread()],
  ['rows to a worker', async () => offloader.run(file, await pullRequests.all())],
  ['all in a worker', () => insights.inAWorker()],
];
/** Once to compile, five times to measure: the shortest standstill, since others use the machine too. */
for (const [name, work] of ways) {
  await work();
  let [stoodStillMs, tookMs] = [Infinity, Infinity];
  for (let i = 0; i < 5; i++) {
    await delay(20);
    const histogram = monitorEventLoopDelay({ resolution: 1 });
    histogram.enable();
    const startedMs = performance.now();
    await work();
    tookMs = Math.min(tookMs, performance.now() - startedMs);
    await delay(5);
    histogram.disable();
    stoodStillMs = Math.min(stoodStillMs, histogram.max / 1e6);
  }
  console.log(
    `${name}: the event loop stood still for ${stoodStillMs.toFixed(0)} ms, the answer took ${tookMs.toFixed(0)} ms`,
  );
}
const { runMs, cloneMs } = offloader.stats();
console.log(
  `in workers: up to ${runMs.max.toFixed(0)} ms; cloning took the event loop up to ${cloneMs.max.toFixed(1)} ms a call`,
);
await app.close();
