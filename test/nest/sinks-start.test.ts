import { EventEmitter, once } from 'node:events';
import { Controller, Get } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { PerfError, type PerfSink, type PerfSinkHost } from '../../src/index.js';
import { closeApps, listeningApp, settled } from '../fixtures/build-app.js';
import { adapterOf, type Adapter, acrossNests } from '../fixtures/app.js';
import { Lines } from '../fixtures/lines.js';
import { uncaughtDuring } from '../fixtures/uncaught.js';

@Controller('items')
class ItemsController {
  @Get()
  items() {
    return [];
  }
}

/** A sink that notes which of its methods are called. */
class NotedSink implements PerfSink {
  readonly calls: string[] = [];
  host: PerfSinkHost | null = null;
  constructor(
    readonly name: string,
    private readonly starting: () => void | Promise<void> = () => {},
  ) {}
  start(host: PerfSinkHost): void | Promise<void> {
    this.calls.push('start');
    this.host = host;
    return this.starting();
  }
  publish(): void {
    this.calls.push('publish');
  }
  async flush(): Promise<void> {
    this.calls.push('flush');
  }
  async close(): Promise<void> {
    this.calls.push('close');
  }
}

afterEach(closeApps);

async function boot(adapter: Adapter, sinks: PerfSink[], flushTimeoutMs = 200) {
  const lines = new Lines();
  const built = await listeningApp(adapterOf(adapter), {
    perf: { sinks, flushTimeoutMs },
    metadata: { controllers: [ItemsController] },
    nest: { logger: lines },
  });
  return { ...built, lines };
}

describe.each(acrossNests('express'))('the start of sinks on %s', (adapter) => {
  it('is one for all: each waits for the others', async () => {
    const all = new EventEmitter();
    let waiting = 3;
    const meet = async (): Promise<void> => {
      if ((waiting -= 1) === 0) all.emit('met');
      else await once(all, 'met');
    };
    const sinks = ['a', 'b', 'c'].map((name) => new NotedSink(name, meet));
    const { url, lines, ...built } = await boot(adapter, sinks, 30_000);
    await fetch(`${url}/items`);
    await settled({ ...built });
    // A slow machine publishes in more than one batch.
    expect(sinks.map(({ calls }) => [...new Set(calls)])).toEqual(sinks.map(() => ['start', 'publish', 'flush']));
    expect(lines.all.filter((line) => line.includes('failed'))).toEqual([]);
  });

  it.each<[string, () => Promise<void>, string]>([
    ['hangs', () => new Promise(() => {}), 'start() did not settle within 200 ms'],
    ['rejects', () => Promise.reject(new Error('no route to host')), 'no route to host'],
    [
      'throws',
      () => {
        throw new Error('no such table');
      },
      'no such table',
    ],
  ])('leaves out one that %s: no records, no close, one line', async (_how, starting, reason) => {
    const bad = new NotedSink('bad', starting);
    const good = new NotedSink('good');
    const { url, lines, ...built } = await boot(adapter, [bad, good]);
    await fetch(`${url}/items`);
    await settled(built);
    await built.app.close();
    expect(bad.calls).toEqual(['start']);
    expect(good.calls).toEqual(['start', 'publish', 'flush', 'flush', 'close']);
    expect(lines.all.filter((line) => line.includes('sink "bad"'))).toEqual([
      `sink "bad" failed in start(): ${reason}. It is left out: it gets no records. Requests and other sinks are not affected.`,
    ]);
    expect(lines.all.find((line) => line.includes('Records go to'))).toMatch(/Records go to: good, memory\./);
  });

  it.each(['fulfils', 'rejects'] as const)('that %s too late changes nothing', async (how) => {
    const end = new EventEmitter();
    const late = new NotedSink('late', async () => void (await once(end, 'fulfils')));
    const caught = await uncaughtDuring(async () => {
      const { url, ...built } = await boot(adapter, [late]);
      late.host!.get('/late', async () => ({ status: 200, type: 'text/plain', body: 'late' }));
      late.host!.activeSpan!(() => ({ traceId: 'f'.repeat(32), spanId: 'f'.repeat(16) }));
      end.emit(how === 'fulfils' ? how : 'error', new Error('at last'));
      await fetch(`${url}/items`);
      await settled(built);
      expect((await fetch(`${url}/late`)).status).toBe(404);
      expect(built.sink.records.find(({ kind }) => kind === 'request')).not.toHaveProperty('traceId');
      await built.app.close();
    });
    expect([caught, late.calls]).toEqual([[], ['start']]);
  });

  it('with a wrong option stops the boot; what has started is closed, and the wrong one is not', async () => {
    const wrong = new NotedSink('wrong', () => Promise.reject(new PerfError('PERF_ERR_OPTION', 'no such table')));
    const [before, after] = [new NotedSink('before'), new NotedSink('after', () => Promise.resolve())];
    await expect(boot(adapter, [before, wrong, after])).rejects.toThrow('PERF_ERR_OPTION: no such table');
    expect([before, wrong, after].map(({ calls }) => calls)).toEqual([
      ['start', 'flush', 'close'],
      ['start'],
      ['start', 'flush', 'close'],
    ]);
  });
});
