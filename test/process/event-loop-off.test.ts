/* eslint-disable typescript/unbound-method -- compared, never called */
import { readdirSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { Controller, Get } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { describe, expect, it } from 'vitest';
import { settle } from '../../src/entries/testing.js';
import { PerfService } from '../../src/index.js';
import { adapterOf, either, startApp } from '../fixtures/app.js';
import { buildApp, closeServer, ownServer } from '../fixtures/build-app.js';
import { until } from '../fixtures/until.js';

@Controller()
class HelloController {
  @Get('hello')
  hello() {
    return 'world';
  }
}
const metadata = { controllers: [HelloController] };

/** Threads of this process; the event loop's pool and V8's helpers are among them. */
const threads = (): string[] => readdirSync('/proc/self/task');
const descriptors = (): number => readdirSync('/proc/self/fd').length;
const globals = () => [
  JSON.parse,
  JSON.stringify,
  globalThis.structuredClone,
  Error.prepareStackTrace,
  Error.stackTraceLimit,
];

describe.each(either('fastify'))('the sampler on %s', (adapter) => {
  it('is not there when the feature is off', async () => {
    const warm = await startApp(adapter, { metadata, perf: { eventLoop: false } });
    await fetch(`${warm.url}/hello`);
    const before = new Set(threads());
    const running = await startApp(adapter, { metadata, perf: { eventLoop: false } });
    await fetch(`${running.url}/hello`);
    expect(running.app.get(PerfService).snapshot().eventLoop).toBeNull();
    expect(threads().filter((thread) => !before.has(thread))).toEqual([]);
    await running.close();
    await warm.close();
  });

  it('starts when the server listens, not before', async () => {
    let initialised: string[] = [];
    const before = new Set(threads());
    const running = await startApp(adapter, {
      metadata,
      beforeInit: async (app) => {
        await app.init();
        initialised = threads();
      },
    });
    expect(initialised.filter((thread) => !before.has(thread))).toEqual([]);
    await until('a thread', () => threads().some((thread) => !before.has(thread)));
    await running.close();
  });

  it('starts with the first request where the application itself does not listen', async () => {
    const { app } = await buildApp(adapterOf(adapter), { metadata });
    const before = new Set(threads());
    if (adapter === 'fastify') await (app.getHttpAdapter().getInstance() as FastifyInstance).inject('/hello');
    else {
      const { server, url } = await ownServer(app.getHttpAdapter().getInstance() as RequestListener);
      await fetch(`${url}/hello`);
      await closeServer(server);
    }
    await until('a thread', () => threads().some((thread) => !before.has(thread)));
    await app.close();
  });

  it('leaves no thread, descriptor, listener or changed global behind', async () => {
    const unused = await startApp(adapter, { metadata, perf: { eventLoop: false } });
    await fetch(`${unused.url}/hello`);
    await unused.close();
    const [threadsBefore, descriptorsBefore, globalsBefore] = [threads().length, descriptors(), globals()];
    const listenersBefore = process.listenerCount('exit');
    for (let i = 0; i < 5; i++) {
      const running = await startApp(adapter, { metadata });
      await fetch(`${running.url}/hello`);
      const end = performance.now() + 80;
      while (performance.now() < end);
      await settle(running.app);
      await running.close();
    }
    expect(globals()).toEqual(globalsBefore);
    expect(process.listenerCount('exit')).toBe(listenersBefore);
    // Sockets of the client are closed a little later.
    await until('as before', () => threads().length <= threadsBefore && descriptors() <= descriptorsBefore);
  });

  it('of two applications in one process blames only its own requests', async () => {
    @Controller()
    class SpinController {
      @Get('spin')
      spin() {
        const end = performance.now() + 150;
        while (performance.now() < end);
        return 'spun';
      }
    }
    const [one, other] = [
      await startApp(adapter, { metadata: { controllers: [SpinController] } }),
      await startApp(adapter, { metadata }),
    ];
    await fetch(`${one.url}/nothing`);
    await fetch(`${other.url}/hello`);
    for (let i = 0; i < 3; i++) {
      await Promise.all([fetch(`${one.url}/spin`), fetch(`${other.url}/hello`)]);
    }
    await settle(one.app);
    await settle(other.app);
    const blamed = (sink: typeof one.sink): unknown[] =>
      sink.records.flatMap((record) =>
        record.kind === 'block' && record.request !== null ? [record.request.route] : [],
      );
    expect(blamed(other.sink)).toEqual([]);
    expect(new Set(blamed(one.sink)).size).toBeLessThanOrEqual(1);
    expect(other.sink.records.some((record) => record.kind === 'block')).toBe(true);
    await one.close();
    await other.close();
  });
});
