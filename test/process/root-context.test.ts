import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Get } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { loggerSink, type PerfModuleOptions, type PerfSink } from '../../src/index.js';
import { adapterOf, either } from '../fixtures/app.js';
import { closeApps, listeningApp, settled } from '../fixtures/build-app.js';
import { Lines } from '../fixtures/lines.js';
import { RawClient } from '../fixtures/socket.js';
import { until } from '../fixtures/until.js';

/** The application's own, as nestjs-cls, nestjs-pino and tracers have one. */
const store = new AsyncLocalStorage<string>();

@Controller()
class WorkController {
  @Get('quick')
  quick() {
    return 'done';
  }
  @Get('slow')
  async slow() {
    await delay(20);
    return 'done';
  }
  @Get('blocks')
  async blocks() {
    await delay(1);
    const end = performance.now() + 130;
    while (performance.now() < end);
    return 'done';
  }
}

/** What the store said each time somebody of the library was heard. */
class Heard {
  readonly all: { what: string; store: string | undefined }[] = [];
  readonly hear = (what: string): void => void this.all.push({ what, store: store.getStore() });
  count = (what: string): number => this.all.filter((heard) => heard.what.includes(what)).length;
  inRequests = (): string[] => this.all.filter(({ store }) => store !== undefined).map(({ what }) => what);
}

afterEach(closeApps);

describe.each(either('express'))('what the library schedules on %s runs in no request’s context', (adapter) => {
  async function start(perf: PerfModuleOptions = {}) {
    const heard = new Heard();
    const sink: PerfSink = {
      name: 'hearing',
      publish(records) {
        for (const { kind } of records) heard.hear(`publish ${kind}`);
      },
      async flush() {
        heard.hear('flush');
      },
    };
    let requests = 0;
    const built = await listeningApp(adapterOf(adapter), {
      metadata: { controllers: [WorkController] },
      nest: { logger: new Lines((line, context) => context === 'Perf' && heard.hear(`log ${line}`)) },
      perf: { ...perf, sinks: [loggerSink(), sink] },
      beforeInit: (app) => {
        app.use((_request: object, _response: object, next: () => void) =>
          store.run(`request ${(requests += 1)}`, next),
        );
      },
    });
    heard.all.length = 0;
    return { ...built, heard };
  }

  it('a batch that its timer sends', async () => {
    const { url, heard } = await start();
    await (await fetch(`${url}/quick`)).text();
    await until('the batch', () => heard.count('publish request') > 0, 5_000);
    expect(heard.inRequests()).toEqual([]);
  });

  it('a batch that is sent because it is full', async () => {
    const { port, heard } = await start();
    const client = await RawClient.open(port);
    for (let i = 0; i < 700; i++) client.get('/quick');
    await client.until('HTTP/1.1 200', 700);
    client.leave();
    await until('the batch', () => heard.count('publish request') >= 500, 5_000);
    expect(heard.inRequests()).toEqual([]);
  });

  it('lines of slow requests and of blocks', async () => {
    const { url, heard } = await start({ latency: { slowMs: 5 } });
    await (await fetch(`${url}/slow`)).text();
    await until('the line of a slow request', () => heard.count('took') > 0, 5_000);
    await until(
      'the line of a block',
      async () => {
        await (await fetch(`${url}/blocks`)).text();
        return heard.count('event loop') + heard.count('not scheduled') > 0;
      },
      30_000,
    );
    expect(heard.inRequests()).toEqual([]);
  });

  it('a complaint of a sink that fails', async () => {
    const heard = new Heard();
    const built = await listeningApp(adapterOf(adapter), {
      metadata: { controllers: [WorkController] },
      nest: { logger: new Lines((line, context) => context === 'Perf' && heard.hear(`log ${line}`)) },
      perf: {
        sinks: [
          {
            name: 'failing',
            publish() {
              throw new Error('on purpose');
            },
          },
        ],
      },
      beforeInit: (app) => {
        app.use((_request: object, _response: object, next: () => void) => store.run('request', next));
      },
    });
    await (await fetch(`${built.url}/quick`)).text();
    await until('the complaint', () => heard.count('failing') > 0, 5_000);
    expect(heard.inRequests()).toEqual([]);
  });

  it('a flush that somebody asks for inside a request is heard in none', async () => {
    const { app, sink, url, heard } = await start();
    await (await fetch(`${url}/quick`)).text();
    await store.run('asked', () => settled({ app, sink }));
    expect(heard.count('publish')).toBeGreaterThan(0);
    expect(heard.inRequests()).toEqual([]);
  });
});
