import { beforeEach, describe, expect, it } from 'vitest';
import { defer, Deferrer, type DeferredRecord } from '../../src/index.js';
import { settle } from '../../src/entries/testing.js';
import { adapters, type TestApp } from '../fixtures/app.js';
import { Log, ORDERS } from '../fixtures/deferring-orders.js';
import { RawClient } from '../fixtures/socket.js';
import { until } from '../fixtures/until.js';
import { startDeferring } from '../fixtures/works.js';

describe.each(adapters)('deferred work on %s', (adapter) => {
  let running: TestApp;
  let log: Log;
  let deferrer: Deferrer;
  beforeEach(async () => {
    running = await startDeferring(adapter, ORDERS);
    [log, deferrer] = [running.app.get(Log), running.app.get(Deferrer)];
  });
  /** Answers with the status, once all of its work has ended. */
  const get = async (path: string): Promise<number> => {
    const response = await fetch(`${running.url}${path}`);
    await response.text();
    await settle(running.app);
    return response.status;
  };
  const deferred = async (): Promise<DeferredRecord[]> => {
    await settle(running.app);
    return running.sink.records.filter((record) => record.kind === 'deferred');
  };

  it('runs a class with what prepare() picked, and a function with the final status, after the response', async () => {
    const response = await fetch(`${running.url}/orders`, { method: 'POST', headers: { 'x-request-id': 'req-7' } });
    expect([response.status, await response.json()]).toEqual([201, { id: 'o-1' }]);
    await settle(running.app);
    expect(log.details).toEqual([
      { prepare: { result: { id: 'o-1' }, error: null, status: null, requestId: 'req-7' } },
      { run: { data: { orderId: 'o-1' }, attempt: 1, requestId: 'req-7', status: 201 } },
    ]);
  });

  it('runs the controller’s work before the handler’s, each in source order', async () => {
    await fetch(`${running.url}/orders`, { method: 'POST' });
    await settle(running.app);
    expect(log.lines).toEqual(['controller first', 'controller second', 'receipt o-1', 'handler second']);
  });

  it('runs what the handler has deferred first, in order, asynchronous work included', async () => {
    await get('/orders/ordered');
    expect(log.lines).toEqual([
      'deferred first',
      'deferred second',
      'controller first',
      'controller second',
      'handler',
    ]);
  });

  it('gives a class without prepare() the handler’s result, the last value of an Observable', async () => {
    expect(await (await fetch(`${running.url}/orders/plain/7`)).json()).toEqual({ id: '7' });
    await settle(running.app);
    expect(log.lines).toContain('plain {"id":"7"}');
  });

  it('resolves request-scoped work for its own request', async () => {
    await Promise.all(['1', '2', '3'].map((n) => get(`/orders/scoped?n=${n}`)));
    await settle(running.app);
    expect(log.lines.filter((text) => text.startsWith('scoped')).toSorted()).toEqual([
      'scoped /orders/scoped?n=1',
      'scoped /orders/scoped?n=2',
      'scoped /orders/scoped?n=3',
    ]);
  });

  it('works on request-scoped controllers', async () => {
    expect(await (await fetch(`${running.url}/per-request/5`)).json()).toEqual({ id: '5' });
    await settle(running.app);
    expect(log.lines).toEqual(['plain {"id":"5"}', 'function 200']);
  });

  describe('when', () => {
    it('a handler that throws: success work is neither prepared nor run', async () => {
      expect(await get('/orders/throws')).toBe(400);
      expect(log.lines).toEqual(['controller first', 'on error', 'always']);
      expect(log.details).toEqual([]);
      expect((await deferred()).map(({ outcome }) => outcome)).toEqual(['completed', 'completed', 'completed']);
    });

    it('the status decides, not the handler: 404 by @HttpCode is no success', async () => {
      expect(await get('/orders/four-hundred')).toBe(404);
      expect(log.lines).toEqual(['error only', 'controller first', 'on error']);
    });

    it('the status decides, not the handler: an error that a filter turned into 200 is a success', async () => {
      expect(await get('/orders/forgiven')).toBe(200);
      expect(log.lines).toEqual(['controller first', 'controller second', 'after an error that became 200']);
    });

    it('a guard that rejects arms nothing, not even `always`', async () => {
      expect(await get('/orders/guarded')).toBe(403);
      expect(log.lines).toEqual([]);
      expect(deferrer.stats().accepted).toBe(0);
    });

    it('a HEAD request runs what its GET would run', async () => {
      const response = await fetch(`${running.url}/orders/ordered`, { method: 'HEAD' });
      expect(response.status).toBe(200);
      await settle(running.app);
      expect(log.lines).toContain('handler');
    });
  });

  describe('clients that leave', () => {
    it('a client that left before a handler that succeeds: everything runs, what is armed late included', async () => {
      const client = await RawClient.open(running.port);
      client.get('/orders/slow');
      await until('the handler to start', () => log.entered);
      client.leave();
      await until('all work', () => log.lines.length === 5);
      expect(log.lines).toEqual([
        'deferred before',
        'deferred late',
        'controller first',
        'controller second',
        'plain "too late"',
      ]);
      expect((await running.requests())[0]).toMatchObject({ outcome: 'aborted', status: 499 });
    });

    it('a client that left before a handler that fails: only `error` and `always` run', async () => {
      const client = await RawClient.open(running.port);
      client.get('/orders/slow-failure');
      await until('the handler to start', () => log.entered);
      client.leave();
      await until('the work', () => log.lines.length === 2);
      await settle(running.app);
      expect(log.lines).toEqual(['controller first', 'on error']);
      expect(deferrer.stats()).toMatchObject({ accepted: 2, completed: 2, pending: 0 });
    });

    it('server-sent events: runs when the client has gone', async () => {
      const client = await RawClient.open(running.port);
      client.get('/orders/events');
      await client.until('data: event 3');
      expect(log.lines).toEqual([]);
      client.leave();
      await until('the work', () => log.lines.length === 3);
      expect(log.lines).toEqual(['controller first', 'controller second', 'after the events']);
    });
  });

  it('waits for the last byte of a stream', async () => {
    expect(await (await fetch(`${running.url}/orders/stream`)).text()).toBe('first last');
    await settle(running.app);
    expect(log.lines).toEqual(['last byte', 'deferred', 'controller first', 'controller second', 'after the stream']);
  });

  it('runs after a handler that answers by itself', async () => {
    await get('/orders/res');
    await until('the work', () => log.lines.length === 3);
    expect(log.lines).toEqual(['controller first', 'controller second', 'after a manual answer']);
  });

  it('appends what deferred work defers; a `when` of its own still counts', async () => {
    await get('/orders/nested');
    expect(log.lines).toEqual(['outer', 'inner']);
  });

  it('outside a request, deferrer.defer() and defer() run on the next turn', async () => {
    const turns: string[] = [];
    deferrer.defer(() => turns.push('task'));
    defer(() => turns.push('another'));
    turns.push('caller');
    await deferrer.idle();
    expect(turns).toEqual(['caller', 'task', 'another']);
  });

  it('survives work that rejects, throws or hangs, and tells each in its record', async () => {
    expect(await get('/orders/bad-work')).toBe(200);
    const records = (await deferred()).filter(({ name }) => ['rejects', 'throws', 'hangs'].includes(name));
    expect(records.map(({ name, outcome, error, attempt }) => [name, outcome, error, attempt])).toEqual([
      ['rejects', 'failed', 'rejected', 1],
      ['throws', 'failed', 'thrown', 1],
      ['hangs', 'timeout', 'took longer than 30 ms', 1],
    ]);
    expect(deferrer.stats()).toMatchObject({ failed: 3, running: 0, pending: 0 });
  });

  it('a prepare() that throws costs the client nothing and is counted as failed', async () => {
    expect(await get('/orders/bad-prepare')).toBe(200);
    expect((await deferred()).filter(({ name }) => name === 'Receipt')).toMatchObject([
      { outcome: 'failed', error: expect.stringMatching(/reading 'id'/) as string },
    ]);
  });

  it('keeps 100 concurrent requests apart, deferred work inside deferred work included', async () => {
    await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        fetch(`${running.url}/orders/context/${i}`, { headers: { 'x-request-id': `r-${i}` } }),
      ),
    );
    await settle(running.app);
    expect(log.details).toHaveLength(100);
    for (const { id, requestId, inner } of log.details) {
      expect([requestId, inner]).toEqual([`r-${String(id)}`, `r-${String(id)}`]);
    }
  });

  it('shows its counters in the snapshot', async () => {
    await get('/orders/ordered');
    const stats = deferrer.stats();
    expect(stats).toMatchObject({ accepted: 5, completed: 5, failed: 0, dropped: 0, pending: 0, running: 0 });
  });
});
