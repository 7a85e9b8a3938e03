import { Redis } from 'ioredis';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { DashboardData } from '../../src/dashboard/view.js';
import { either } from '../fixtures/app.js';
import { closePods, roundRobin, TOKEN, twoPods } from '../fixtures/dashboard-pods.js';
import { dataOf, textOf } from '../fixtures/dashboard.js';
import { connection } from '../fixtures/redis.js';

afterEach(closePods);

/** What is the same whichever pod answers. */
const shared = ({ scope, routes, totals, pods, overMs }: DashboardData) => ({ scope, routes, totals, pods, overMs });

describe.each(either('express'))('the page of several pods on %s', { timeout: 120_000 }, (adapter) => {
  it('tells of all of them alike, whoever answers, and of one where it is asked for', async () => {
    const [a, b] = await twoPods(adapter);
    for (let i = 0; i < 12; i++) await (await fetch(`${a.url}/users/7`)).text();
    for (let i = 0; i < 30; i++) await (await fetch(`${b.url}/users/7`)).text();
    for (let i = 0; i < 3; i++) await (await fetch(`${b.url}/users`)).text();
    for (const pod of [a, b]) await pod.history.tick();
    const url = await roundRobin([a.url, b.url]);
    // A pod that is slow to read the store answers with its own figures, or with older ones, until it has.
    const { routes, totals, pods, scope } = await vi.waitFor(
      async () => {
        const [one, other] = [await dataOf(url, TOKEN), await dataOf(url, TOKEN)];
        expect(one.totals?.count).toBe(45);
        expect(shared(one)).toEqual(shared(other));
        return one;
      },
      { timeout: 50_000, interval: 200 },
    );
    expect(Object.fromEntries(routes.map(({ name, count, errors = 0 }) => [name, [count, errors]]))).toEqual({
      'GET /users/:id': [42, 0],
      'GET /users': [3, 3],
    });
    expect([scope, totals!.count, totals!.errors, pods!.length]).toEqual(['fleet', 45, 3, 2]);
    for (const pod of pods!) {
      expect(pod.memoryBytes).toBeGreaterThan(2 ** 20);
      expect(Object.keys(pod)).toEqual(
        expect.arrayContaining(['requests', 'p95Ms', 'loopBusy', 'throttled', 'release']),
      );
    }
    const detail = (await dataOf(url, TOKEN, `?route=${encodeURIComponent('GET /users/:id')}`)).detail!;
    expect(detail.row.id).toBe('GET /users/:id');
    const own = await dataOf(a.url, TOKEN, '?scope=pod');
    expect([own.scope, own.isShared, own.totals!.count]).toEqual(['pod', true, 12]);
    const text = await textOf(url, TOKEN);
    expect(text).toMatch(/^PODS, THEIR LAST MINUTE$/m);
    expect(text).toMatch(/^GET \/users\/:id +42 /m);
  });

  it('is there whatever somebody else has written to Redis', async () => {
    const [a] = await twoPods(adapter);
    await (await fetch(`${a.url}/users/7`)).text();
    await a.history.tick();
    const client = new Redis(connection);
    onTestFinished(() => client.disconnect());
    const prefix = a.prefix;
    const told = {
      pod: 'x\u001b[2J',
      instance: 7,
      release: {},
      at: Date.now(),
      requests: 2 ** 53,
      errors: -1,
      p95Ms: 'NaN',
    };
    await client.hset(`${prefix}:{fleet}:minute:${Math.floor(Date.now() / 60_000)}`, {
      junk: 'no json',
      1: JSON.stringify(told),
      2: '{"at":9007199254740991}',
    });
    const verdict = {
      id: 'x',
      kind: 'worse',
      state: 'active',
      since: 2 ** 53,
      text: 'y',
      routes: [],
      because: [],
      ci: [],
    };
    const verdicts = {
      judgedUntil: 2 ** 53,
      verdicts: [verdict, { ...verdict, since: 1, change: 1, routes: [1] }, null],
    };
    await client.set(`${prefix}:{fleet}:verdicts`, JSON.stringify(verdicts));
    await client.hset(`${prefix}:3:{1m:${Math.floor(Date.now() / 60_000) * 60_000}}`, {
      junk: '9',
      [JSON.stringify(['', '\u001b[31m'])]: 'x',
      [JSON.stringify(['', 'process'])]: 'x',
    });
    await a.history.tick();
    const text = await textOf(a.url, TOKEN);
    expect(text).toMatch(/^GET \/users\/:id +1 /m);
    // eslint-disable-next-line no-control-regex
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/);
    // On a busy machine one of the pods may be the odd one.
    const { now } = (await dataOf(a.url, TOKEN)).sections;
    expect(now.filter(({ section }) => section !== 'pods')).toEqual([]);
  });
});
