import { Controller, HttpException, type MessageEvent, Param, Scope, Sse, UseInterceptors } from '@nestjs/common';
import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { concat, from, map, Observable, of, Subject, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { byNest } from '../fixtures/app.js';
import { RawClient } from '../fixtures/socket.js';
import { until } from '../fixtures/until.js';
import { bothForms, type RunningApplication } from './applications.js';

/** One channel for each request under way: the test decides when an event is sent. */
const channels: Subject<MessageEvent>[] = [];
let unsubscribed = 0;

function channel(): Observable<MessageEvent> {
  const events = new Subject<MessageEvent>();
  channels.push(events);
  return new Observable((subscriber) => {
    const subscription = events.subscribe(subscriber);
    return () => {
      unsubscribed += 1;
      subscription.unsubscribe();
    };
  });
}

class Doubling implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(map((event: MessageEvent) => ({ ...event, id: 'intercepted' })));
  }
}

abstract class Events {
  @Sse('at-once')
  atOnce() {
    return from([{ data: 'one' }, { data: { two: 2 }, id: '7', type: 'named', retry: 5 }, { data: 'three\nlines' }]);
  }
  @Sse('at-once/async')
  async atOnceAsync() {
    await new Promise((resolve) => setImmediate(resolve));
    return from([{ data: 'one' }, { data: 'two' }]);
  }
  @Sse('in-time')
  inTime() {
    return channel();
  }
  @Sse('in-time/async')
  async inTimeAsync() {
    await new Promise((resolve) => setImmediate(resolve));
    return channel();
  }
  @Sse('in-time/promise')
  inTimePromise() {
    return Promise.resolve(channel());
  }
  @Sse('fails/:how')
  fails(@Param('how') how: string): Observable<MessageEvent> {
    if (how === 'early') throw new HttpException('before the first event', 409);
    return concat(
      of({ data: 'one' }),
      throwError(() => new HttpException('midway', 409)),
    );
  }
  @Sse('fails-async')
  async failsAsync(): Promise<Observable<MessageEvent>> {
    throw new HttpException('before the first event', 409);
  }
}

@Controller('plain')
class PlainController extends Events {}
@Controller({ path: 'scoped', scope: Scope.REQUEST })
class ScopedController extends Events {}
@Controller('intercepted')
@UseInterceptors(Doubling)
class InterceptedController extends Events {}

const controllers = [PlainController, ScopedController, InterceptedController];

async function listen({ port }: RunningApplication, path: string) {
  const before = channels.length;
  const client = await RawClient.open(port);
  client.get(path);
  await until('the handler has run', () => channels.length > before);
  return { client, events: channels.at(-1)! };
}
/** Rejected when it does not come by itself: an event that is held back is the failure. */
async function arrives(client: RawClient, text: string) {
  await until(`"${text}" arrives`, () => client.received.includes(text), 10_000);
}

describe.each(byNest('fastify'))('server-sent events on %s', (adapter) => {
  const { alike, ask } = bothForms(adapter, () => ({ controllers }));

  describe.each(['plain', 'scoped', 'intercepted'])('of a controller that is %s', (kind) => {
    it.each(['in-time', 'in-time/async', 'in-time/promise'])('arrive one by one from %s', async (path) => {
      await alike(async (running) => {
        const { client, events } = await listen(running, `/${kind}/${path}`);
        await until('the source is subscribed', () => events.observed);
        for (const data of ['first', 'second', 'third']) {
          events.next({ data });
          await arrives(client, `data: ${data}\n`);
        }
        events.complete();
        await client.until('0\r\n\r\n');
        const records = await running.newRecords();
        client.leave();
        expect(client.received).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
        expect(client.received.toLowerCase()).toContain('content-type: text/event-stream');
        if (records !== null) expect(records).toMatchObject([{ status: 200, outcome: 'completed' }]);
        return client.received
          .split('data: ')
          .map((part) => part.split('\n')[0]!)
          .slice(1);
      });
    });

    it.each(['in-time', 'in-time/async'])('end when the client leaves %s', async (path) => {
      await alike(async (running) => {
        const before = unsubscribed;
        const { client, events } = await listen(running, `/${kind}/${path}`);
        await until('the source is subscribed', () => events.observed);
        events.next({ data: 'first' });
        await arrives(client, 'data: first');
        client.leave();
        await until('the source is unsubscribed', () => unsubscribed > before);
        await until('nobody listens', () => !events.observed);
        const records = await running.newRecords();
        if (records !== null) expect(records).toMatchObject([{ status: 200 }]);
        return unsubscribed - before;
      });
    });

    it('send the headers before the first event', async () => {
      await alike(async (running) => {
        const { client, events } = await listen(running, `/${kind}/in-time`);
        await arrives(client, '200 OK');
        events.complete();
        client.leave();
      });
    });

    it.each(['fails/early', 'fails-async'])('answer an error before the first event: %s', async (path) => {
      const { status, text } = await ask(`/${kind}/${path}`);
      expect({ status, text }).toMatchObject({ status: 409, text: expect.stringContaining('before the first event') });
    });

    it('tell an error midway as an event', async () => {
      const { text } = await ask(`/${kind}/fails/midway`);
      expect(text).toMatch(/data: one\n.*event: error\n.*data: midway\n/s);
    });
  });

  it('have their fields', async () => {
    const { status, headers, text } = await ask('/plain/at-once');
    expect(status).toBe(200);
    expect(headers).toMatchObject({ 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' });
    expect(text).toContain('data: one\n');
    expect(text).toMatch(/event: named\n(id: 7\n|retry: 5\n)+data: \{"two":2\}\n/);
    expect(text).toContain('data: three\ndata: lines\n');
  });

  it('are changed by interceptors', async () => {
    const { text } = await ask('/intercepted/at-once');
    expect(text.match(/^id: intercepted$/gm)).toHaveLength(3);
  });

  it.each(['plain', 'scoped', 'intercepted'])('come from an async handler of a controller that is %s', async (kind) => {
    const { text } = await ask(`/${kind}/at-once/async`);
    expect(text.match(/^data: .*$/gm)).toEqual(['data: one', 'data: two']);
  });
});
