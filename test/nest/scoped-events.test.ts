import { Controller, Scope, Sse } from '@nestjs/common';
import { Observable, Subject } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import { DeferWork } from '../../src/index.js';
import { adapterOf, byNest } from '../fixtures/app.js';
import { closeApps, listeningApp } from '../fixtures/build-app.js';
import { RawClient } from '../fixtures/socket.js';
import { until } from '../fixtures/until.js';

let source = new Subject<{ data: string }>();
let subscribed = 0;
let unsubscribed = 0;
const events = (): Observable<{ data: string }> =>
  new Observable((subscriber) => {
    subscribed += 1;
    const subscription = source.subscribe(subscriber);
    return () => {
      unsubscribed += 1;
      subscription.unsubscribe();
    };
  });

@Controller({ path: 'scoped', scope: Scope.REQUEST })
class ScopedController {
  @Sse('async')
  async promised() {
    return events();
  }
  @Sse('decorated')
  @DeferWork(() => {})
  async decorated() {
    return events();
  }
  @Sse('plain')
  plain() {
    return events();
  }
}
@Controller('static')
class StaticController {
  @Sse('async')
  async promised() {
    return events();
  }
  @Sse('decorated')
  @DeferWork(() => {})
  async decorated() {
    return events();
  }
}
const metadata = { controllers: [ScopedController, StaticController] };
const paths = ['/scoped/async', '/scoped/decorated', '/scoped/plain', '/static/async', '/static/decorated'];

afterEach(closeApps);

async function watch(port: number, path: string): Promise<void> {
  source = new Subject();
  subscribed = unsubscribed = 0;
  const client = await RawClient.open(port);
  try {
    client.get(path);
    await until('the subscription', () => subscribed === 1, 3_000);
    for (const n of [1, 2, 3]) {
      source.next({ data: `event ${n}` });
      // The next one is sent only when this one has come.
      await until(`event ${n}`, () => client.received.includes(`event ${n}`), 3_000);
    }
    expect(unsubscribed).toBe(0);
    client.leave();
    await until('the end of the subscription', () => unsubscribed === 1, 3_000);
    expect([subscribed, source.observed]).toEqual([1, false]);
  } finally {
    client.leave();
    source.complete();
  }
}

describe.each(byNest('express'))('server-sent events on %s', (adapter) => {
  it.each(paths)('%s: each in time, and unsubscribed when the client leaves', async (path) => {
    const { port } = await listeningApp(adapterOf(adapter), { metadata });
    await watch(port, path);
  });

  it('are so without the module', async () => {
    const { port } = await listeningApp(adapterOf(adapter), { metadata, perf: null });
    for (const path of paths) await watch(port, path);
  });
});
