import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Controller, Get, Inject, Injectable } from '@nestjs/common';
import { afterEach, describe, expect, inject, it, onTestFinished } from 'vitest';
import { cache, Preloaded } from '../../src/entries/cache.js';
import { Deferrer, PerfService } from '../../src/index.js';
import { adapterOf, startApp, type TestApp } from '../fixtures/app.js';
import { buildApp, closeApps } from '../fixtures/build-app.js';
import { until } from '../fixtures/until.js';
import { withEventLoop } from '../fixtures/usual.js';

withEventLoop();

let app: TestApp | null = null;
afterEach(async () => {
  await app?.close();
  app = null;
  await closeApps();
});
const ready = (): unknown => app!.app.get(PerfService).ready();

describe('perf.ready()', () => {
  it('is false while the application boots, and from the first hook of its end on', async () => {
    const seen: unknown[] = [];
    @Injectable()
    class Boot {
      constructor(@Inject(PerfService) private readonly perf: PerfService) {}
      onModuleInit(): void {
        seen.push(this.perf.ready());
      }
      beforeApplicationShutdown(): void {
        seen.push(this.perf.ready());
      }
    }
    const built = await buildApp(adapterOf('fastify'), { metadata: { providers: [Boot] } });
    seen.push(built.app.get(PerfService).ready());
    await built.app.close();
    expect(seen).toEqual([
      { ready: false, reasons: ['the application is starting'] },
      { ready: true, reasons: [] },
      { ready: false, reasons: ['the application is closing'] },
    ]);
  });

  it('is false while a value that is loaded in advance is missing', async () => {
    let loaded!: (rates: number[]) => void;
    @Injectable()
    class Rates {
      @Preloaded({ everyMs: 60_000, required: false })
      rates(): Promise<number[]> {
        return new Promise((resolve) => (loaded = resolve));
      }
    }
    app = await startApp('fastify', { perf: { extensions: [cache()] }, metadata: { providers: [Rates] } });
    expect(ready()).toEqual({ ready: false, reasons: ['preloaded data is missing: "Rates.rates"'] });
    loaded([1]);
    await until('it is loaded', () => (ready() as { ready: boolean }).ready);
  });

  it('is false while deferred work is full', async () => {
    let finish!: () => void;
    const finished = new Promise<void>((resolve) => (finish = resolve));
    @Controller()
    class WorkController {
      constructor(@Inject(Deferrer) private readonly deferrer: Deferrer) {}
      @Get()
      get() {
        this.deferrer.defer(() => finished);
        return {};
      }
    }
    app = await startApp('fastify', {
      perf: { defer: { maxPending: 1, concurrency: 1 } },
      metadata: { controllers: [WorkController] },
    });
    expect(ready()).toEqual({ ready: true, reasons: [] });
    // The first one runs, the second waits.
    for (let i = 0; i < 2; i++) await fetch(app.url);
    expect(ready()).toEqual({
      ready: false,
      reasons: ['deferred work is full: the limit of 1 waiting items leaves no room (defer.maxPending)'],
    });
    finish();
    await until('the work has ended', () => (ready() as { ready: boolean }).ready);
  });

  it('is false from SIGTERM on, while the server still answers, and the process ends by that signal', async () => {
    const child = spawn(process.execPath, [`${inject('compiledFixtures')}/leaving.process.js`]);
    onTestFinished(() => void child.kill('SIGKILL'));
    const [port] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
    const url = `http://127.0.0.1:${port.trim()}`;
    const ask = async (): Promise<unknown> => (await fetch(`${url}/ready`)).json();
    expect(await ask()).toEqual({ ready: true, reasons: [] });
    child.kill('SIGTERM');
    await until('it is not ready', async () => !((await ask()) as { ready: boolean }).ready);
    expect(await ask()).toEqual({ ready: false, reasons: ['the application is closing'] });
    const ended = once(child, 'exit');
    await fetch(`${url}/go`, { method: 'POST' });
    expect(await ended).toEqual([null, 'SIGTERM']);
  });
});
