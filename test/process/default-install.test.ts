import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises';
import type { Server } from 'node:http';
import { Controller, Get, Inject, Injectable, Param } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { defer, Deferrer, PerfService } from '../../src/index.js';
import { adapterOf, adapters } from '../fixtures/app.js';
import { closeApps, listeningApp, recordsOf } from '../fixtures/build-app.js';
import { until } from '../fixtures/until.js';

let steps: string[] = [];

@Injectable()
class PlainService {
  constructor(@Inject(PerfService) private readonly perf: PerfService) {}
  async work(id: string): Promise<string> {
    await delay(3);
    await turn();
    defer(() => void steps.push(`work ${id}`));
    await delay(3);
    steps.push(`handler ${id}`);
    return id;
  }
  async note(rows: number): Promise<number> {
    await turn();
    this.perf.note({ rows });
    await delay(rows % 5);
    return rows;
  }
}
@Injectable()
class AskingService {
  constructor(@Inject(Deferrer) private readonly deferrer: Deferrer) {}
  async work(id: string): Promise<string> {
    await turn();
    this.deferrer.defer(() => void steps.push(`work ${id}`));
    steps.push(`handler ${id}`);
    return id;
  }
}

@Controller()
class PlainController {
  constructor(@Inject(PlainService) private readonly service: PlainService) {}
  @Get('work/:id')
  work(@Param('id') id: string) {
    return this.service.work(id);
  }
  @Get('note/:rows')
  note(@Param('rows') rows: string) {
    return this.service.note(Number(rows));
  }
}
@Controller()
class AskingController {
  constructor(@Inject(AskingService) private readonly service: AskingService) {}
  @Get('work/:id')
  work(@Param('id') id: string) {
    return this.service.work(id);
  }
}
const plain = { controllers: [PlainController], providers: [PlainService] };
const asking = { controllers: [AskingController], providers: [AskingService] };

afterEach(closeApps);
const hearEnds = (server: Server): void => {
  server.prependListener('request', (request, response) => {
    response.once('finish', () => steps.push(`response ${request.url?.split('/').pop()}`));
  });
};

// One file is one process: the first call of all is the first test's.
describe.each(adapters)('without any option, on %s', (adapter) => {
  it.each([
    ['defer()', plain],
    ['deferrer.defer()', asking],
  ])('%s works from its first call on, and never runs early', async (_name, metadata) => {
    const built = await listeningApp(adapterOf(adapter), { metadata });
    hearEnds(built.app.getHttpServer() as Server);
    for (const ids of [['1'], ['2'], ['3', '4', '5', '6', '7', '8']]) {
      steps = [];
      const statuses = await Promise.all(ids.map(async (id) => (await fetch(`${built.url}/work/${id}`)).status));
      expect(statuses, ids.join()).toEqual(ids.map(() => 200));
      await until('the work', () => steps.filter((step) => step.startsWith('work')).length === ids.length, 3_000);
      for (const id of ids) {
        const [handler, response, work] = ['handler', 'response', 'work'].map((step) => steps.indexOf(`${step} ${id}`));
        expect([handler! >= 0, handler! < response!, response! < work!], steps.join(', ')).toEqual([true, true, true]);
      }
      expect(steps).toHaveLength(ids.length * 3);
    }
  });

  it.each([
    ['everything on', {}],
    ['`eventLoop: false`', { eventLoop: false }],
  ])('note() works from its first call on, and is never another request’s: %s', async (_name, perf) => {
    const built = await listeningApp(adapterOf(adapter), { metadata: plain, perf });
    const rows = Array.from({ length: 20 }, (_, i) => i + 1);
    await Promise.all(rows.map((n) => fetch(`${built.url}/note/${n}`, { headers: { 'x-request-id': `n${n}` } })));
    const records = await recordsOf(built, rows.length);
    expect(new Map(records.map(({ id, note }) => [id, note]))).toEqual(
      new Map(rows.map((n) => [`n${n}`, { rows: n }])),
    );
    expect(records).toHaveLength(rows.length);
  });

  it('note() leaves out what is no size, and says so once', async () => {
    const warnings: string[] = [];
    const built = await listeningApp(adapterOf(adapter), {
      metadata: plain,
      nest: { logger: { log: () => {}, error: () => {}, warn: (message: string) => void warnings.push(message) } },
    });
    for (const rows of ['many', '-5', 'Infinity', '7']) await fetch(`${built.url}/note/${rows}`);
    const records = await recordsOf(built, 4);
    expect(records.map(({ note }) => note)).toEqual([null, null, null, { rows: 7 }]);
    expect(warnings.filter((text) => text.includes('PerfService.note()'))).toEqual([
      'PerfService.note() on GET /note/:rows with `rows` that is no size: a number of 0 or more is expected, got `NaN` (number). It is left out.',
    ]);
  });
});
