import type { RequestListener } from 'node:http';
import { Controller, Get, Inject } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { afterEach, expect, it } from 'vitest';
import { Deferrer, DeferWork, PerfService, ResourceSampler } from '../../src/index.js';
import { closeApps, listeningApp } from '../fixtures/build-app.js';
import { callAccepting } from '../fixtures/http-client.js';
import { Lines } from '../fixtures/lines.js';
import { until } from '../fixtures/until.js';

const TEXT = 'compressible '.repeat(2_000);
let worked = 0;

/** Serves HTTP, but what it gives as its framework has neither Express's nor Fastify's methods. */
class OtherAdapter extends ExpressAdapter {
  private readonly listener: RequestListener = (request, response) =>
    (this.instance as unknown as RequestListener)(request, response);

  override getType(): string {
    return 'uws';
  }
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- as the adapter has it
  override getInstance<T>(): T {
    return this.listener as T;
  }
}

@Controller()
class OtherController {
  constructor(@Inject(PerfService) readonly perf: PerfService) {}
  @Get('text')
  text() {
    this.perf.note({ rows: 1 });
    return { text: TEXT };
  }
  @Get('works')
  @DeferWork(() => void (worked += 1))
  async works() {
    return 'done';
  }
}

afterEach(closeApps);

it('serves without the module, which this comparison needs', async () => {
  @Controller()
  class BareController {
    @Get()
    get() {
      return 'done';
    }
  }
  const { url } = await listeningApp(new OtherAdapter(), { metadata: { controllers: [BareController] }, perf: null });
  expect(await (await fetch(url)).text()).toBe('done');
});

it('an adapter of an unknown type boots with one clear sentence, and runs without what needs HTTP', async () => {
  const lines = new Lines();
  const { app, url, sink } = await listeningApp(new OtherAdapter(), {
    metadata: { controllers: [OtherController] },
    nest: { logger: lines },
  });
  const sentences = lines.all.filter((line) => line.includes('uws'));
  expect(sentences).toHaveLength(1);
  expect(sentences[0]).toMatch(/fastify/i);
  expect(sentences[0]).toMatch(/express/i);

  worked = 0;
  const response = await callAccepting(`${url}/text`, 'gzip');
  expect([response.status, response.headers['content-encoding']]).toEqual([200, undefined]);
  expect((await fetch(`${url}/works`)).status).toBe(200);
  await until('the deferred work', () => worked === 1, 3_000);

  expect(app.get(PerfService).snapshot().routes).toEqual([]);
  expect(app.get(ResourceSampler).sample().process.rssBytes).toBeGreaterThan(0);
  await app.get(Deferrer).idle();
  expect(sink.records.filter(({ kind }) => kind === 'request')).toEqual([]);
});
