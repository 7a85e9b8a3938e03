import { readdirSync } from 'node:fs';
import type { Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { describe, expect, it } from 'vitest';
import { defer, PerfModule, type PerfModuleOptions, type PerfSink } from '../../src/index.js';
import { type Adapter, adapterOf, adapters, byTurns } from '../fixtures/app.js';
import { listeningApp } from '../fixtures/build-app.js';
import { call } from '../fixtures/http-client.js';
import { until } from '../fixtures/until.js';

/** Wide: the aim is 5 ms, on a machine that does nothing else. */
const MOST_MS = 12;
const ROUNDS = 9;

@Controller()
class QuickController {
  @Get()
  get() {
    return 'done';
  }
}
const metadata = { controllers: [QuickController] };

async function closeMs(adapter: Adapter, perf: PerfModuleOptions | null, requests = 1): Promise<number> {
  const { app, url } = await listeningApp(adapterOf(adapter), { metadata, perf });
  for (let i = 0; i < requests; i++) expect((await call(url)).status).toBe(200);
  const startedMs = performance.now();
  await app.close();
  return performance.now() - startedMs;
}
const medianOf = (values: number[]): number => values.sort((a, b) => a - b)[values.length >> 1]!;
const inProc = (folder: string): number =>
  process.platform === 'linux' ? readdirSync(`/proc/self/${folder}`).length : 0;
const NODES_OWN = new Set(['Timeout', 'Immediate']);
/** What can be left behind, counted by name. */
function left(): Map<string, number> {
  const counts = new Map([
    ['threads', inProc('task')],
    ['files', inProc('fd')],
  ]);
  for (const name of process.eventNames()) counts.set(`on ${String(name)}`, process.listenerCount(name));
  for (const name of process.getActiveResourcesInfo()) {
    if (!NODES_OWN.has(name)) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}
/** Sockets and threads end a moment later: once nothing has changed for a while. */
async function leftForGood(): Promise<Map<string, number>> {
  let counts = left();
  let same = 0;
  await until('nothing to change any more', () => {
    const next = left();
    same = JSON.stringify([...next]) === JSON.stringify([...counts]) ? same + 1 : 0;
    counts = next;
    return same >= 25;
  });
  return counts;
}

describe.each(adapters)('app.close() on %s', (adapter) => {
  it('takes about as long as without the module', async ({ skip }) => {
    const [bare, measured]: [number[], number[]] = [[], []];
    for (let round = 0; round < ROUNDS; round++) {
      bare.push(await closeMs(adapter, null));
      measured.push(await closeMs(adapter, {}));
    }
    const [medianMs, controlMs] = [medianOf(measured), medianOf(bare)];
    const apartMs = bare.at(-2)! - bare[1]!;
    skip(apartMs > MOST_MS, `without the module, closing times were ${apartMs.toFixed(0)} ms apart`);
    expect(medianMs - controlMs).toBeLessThan(MOST_MS);
  });

  it('does not wait for a client that asks again and again on one connection', async () => {
    let release: (() => void) | null = null;
    const held = new Promise<void>((resolve) => (release = resolve));
    let isHeld = false;
    @Controller()
    class HoldingController {
      @Get()
      async get() {
        isHeld = true;
        await held;
      }
    }
    const { app, url } = await listeningApp(adapterOf(adapter), { metadata: { controllers: [HoldingController] } });
    const asking = (async () => {
      for (let i = 0; i < 1_000; i++) {
        await (await fetch(url)).text();
        await sleep(5);
      }
    })();
    await expect.poll(() => isHeld).toBe(true);
    const closed = app.close();
    await expect.poll(() => (app.getHttpServer() as Server).listening).toBe(false);
    release!();
    // Nobody listens there any more.
    await expect(asking).rejects.toThrow('fetch failed');
    await closed;
  });

  it.each(byTurns(adapter, [0, 1, 20]))('leaves nothing behind, soon after %d requests', async (requests) => {
    // What a process makes once is there after the first ones.
    for (let i = 0; i < 2; i++) await closeMs(adapter, {}, requests);
    const before = await leftForGood();
    for (let i = 0; i < 4; i++) await closeMs(adapter, {}, requests);
    // On a busy machine a thread takes its time to end.
    const more = () => [...left()].filter(([name, count]) => count > (before.get(name) ?? 0));
    await expect.poll(more, { timeout: 20_000 }).toEqual([]);
  });
});

describe.each(adapters)('closing while it boots on %s', (adapter) => {
  it('waits for what is being started, and closes that', async () => {
    const steps: string[] = [];
    let letStart!: () => void;
    const mayStart = new Promise<void>((resolve) => (letStart = resolve));
    const sink: PerfSink = {
      name: 'slow to start',
      async start() {
        steps.push('start');
        await mayStart;
        steps.push('started');
      },
      publish: () => {},
      close: async () => void steps.push('closed'),
    };
    @Module({ imports: [PerfModule.forRoot({ sinks: [sink] })] })
    class SlowModule {}
    const app = await NestFactory.create(SlowModule, adapterOf(adapter), { logger: false });
    // What a boot says that was interrupted is Nest's and the framework's own.
    const booted = app.init().catch(() => {});
    await expect.poll(() => steps).toEqual(['start']);
    const closed = app.close();
    // A close that does not wait is over by then.
    await Promise.race([closed, sleep(100)]);
    letStart();
    await Promise.all([closed, booted]);
    expect(steps).toEqual(['start', 'started', 'closed']);
    expect(() => defer(() => {})).toThrow(
      'PERF_ERR_OFF: `defer()` needs an application that imports PerfModule and has booted, and none runs in this process. Call it within a request, or between the end of the boot and `app.close()`.',
    );
  });
});
