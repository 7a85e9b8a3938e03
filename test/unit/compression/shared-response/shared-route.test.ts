import { describe, expect, it } from 'vitest';
import type { SharedFlight } from '../../../../src/compression/shared-response/shared-flight.js';
import { type Admission } from '../../../../src/compression/shared-response/shared-route.js';

import { answer, bodyOf, route } from './shared-route.fixture.js';

describe('shared answers of a route', () => {
  it('serve everybody for the TTL, then somebody makes the next', async () => {
    const { clock, admit, land } = route();
    await land(await admit(), 'first');
    clock.nowMs += 99;
    expect(bodyOf(await admit())).toBe('first');
    clock.nowMs += 1;
    expect((await admit()).kind).toBe('lead');
  });

  it('are served stale while the next is made, for one more TTL at most', async () => {
    const { clock, admit, land } = route();
    await land(await admit(), 'old');
    clock.nowMs += 150;
    const leader = await admit();
    expect(leader.kind).toBe('lead');
    expect(bodyOf(await admit())).toBe('old');
    clock.nowMs += 50;
    const late = admit();
    await land(leader, 'new');
    expect(bodyOf(await late)).toBe('new');
  });

  it.each([
    ['an error', answer({}, 500)],
    ['a cookie', answer({ 'set-cookie': 'sid=1' })],
    ['private', answer({ 'cache-control': 'private' })],
    ['no-store', answer({ 'cache-control': 'no-store' })],
    ['no-cache', answer({ 'cache-control': 'no-cache' })],
    ['an encoded body', answer({ 'content-encoding': 'gzip' })],
    ['Vary on a request header', answer({ vary: 'Accept-Language' })],
    ['Vary on everything', answer({ vary: '*' })],
  ])('are never kept with %s: who waited runs alone, the next one leads', async (_what, view) => {
    const { admit, land, slots } = route();
    const leader = await admit();
    const waiting = admit();
    expect(await land(leader, 'no', view)).toBe(false);
    expect((await waiting).kind).toBe('alone');
    expect(slots()).toBe(0);
    expect((await admit()).kind).toBe('lead');
  });

  it('are never kept where they vary with a header that was named before the handler; what CORS names is no such', async () => {
    const { admit, land } = route();
    const language = { vary: 'Origin, Accept-Language' };
    expect(await land(await admit('/feed', { before: language }), 'de', answer(language))).toBe(false);
    const cors = { vary: 'Origin, Access-Control-Request-Headers' };
    expect(await land(await admit('/feed', { before: cors }), 'x', answer(cors))).toBe(true);
  });

  it('say how old they are where they say how long they are good', async () => {
    const { admit, land, clock } = route();
    await land(await admit(), 'x', answer({ 'cache-control': 'max-age=60' }));
    const hit = (await admit()) as Extract<Admission, { kind: 'kept' }>;
    expect(hit.kept.ageAt(clock.nowMs + 3_500)).toBe(3);
    await land(await admit('/other'), 'x');
    expect(((await admit('/other')) as Extract<Admission, { kind: 'kept' }>).kept.ageAt(clock.nowMs)).toBeNull();
    expect(await land(await admit('/old'), 'x', answer({ 'cache-control': 'max-age=0' }))).toBe(false);
  });

  it('keep the good one while refreshing it fails', async () => {
    const { clock, admit, land } = route();
    await land(await admit(), 'good');
    clock.nowMs += 120;
    await land(await admit(), 'bad', answer({}, 503));
    const [leader, other] = [await admit(), await admit()];
    expect(leader.kind).toBe('lead');
    expect(bodyOf(other)).toBe('good');
  });

  it('are made by somebody else when the client of the one that made it has left', async () => {
    const { admit, land } = route();
    const first = (await admit()) as { flight: SharedFlight };
    const waiting = [admit(), admit(), admit()];
    first.flight.close(false);
    const next = await waiting[0]!;
    expect(next.kind).toBe('lead');
    await land(next, 'from the second');
    expect(bodyOf(await waiting[1]!)).toBe('from the second');
    expect(bodyOf(await waiting[2]!)).toBe('from the second');
  });

  it('say why a stream is not shared', async () => {
    const { admit, reasons } = route();
    const { flight } = (await admit()) as { flight: SharedFlight };
    const waiting = admit();
    flight.close(true);
    flight.close(true);
    expect((await waiting).kind).toBe('alone');
    expect(reasons).toEqual(['it is a stream, or was written around the framework']);
  });

  it('replay what the handler has set, never what belongs to each request', async () => {
    const { admit, land } = route();
    const before = { 'access-control-allow-origin': 'https://a.example', 'x-request-id': '1', vary: 'Origin' };
    await land(await admit('/feed', { before }), 'x', answer({ ...before, 'x-feed': 'v7', 'content-length': '1' }));
    const hit = (await admit()) as Extract<Admission, { kind: 'kept' }>;
    expect(hit.kept.headers).toEqual([
      ['content-type', 'application/json'],
      ['x-feed', 'v7'],
    ]);
  });

  it('leave with the cache, so that hostile URLs cannot grow memory', async () => {
    const { admit, land, slots, cache } = route({ maxBytes: 20_000 });
    for (let i = 0; i < 200; i++) await land(await admit(`/feed?${i}`), `body ${i}`);
    expect(slots()).toBeLessThan(20);
    expect(cache.bytes).toBeLessThanOrEqual(20_000);
    expect(bodyOf(await admit('/feed?199'))).toBe('body 199');
  });

  it('do not grow with the URLs under which one body stands', async () => {
    const { admit, land, slots, cache } = route({ maxBytes: 1_000_000 });
    for (let i = 0; i < 10_000; i++)
      await land(await admit(`/feed?${i}`), i % 2 === 0 ? 'one body for all' : `body ${i}`);
    expect(cache.bytes).toBeLessThanOrEqual(1_000_000);
    expect(cache.bytes).toBeGreaterThan(slots() * 500);
    expect(bodyOf(await admit('/feed?9998'))).toBe('one body for all');
  });

  it('of two URLs with one body leave and are renewed apart', async () => {
    const { admit, clock, land, cache } = route();
    await land(await admit('/a'), 'same');
    clock.nowMs += 60;
    await land(await admit('/b'), 'same');
    clock.nowMs += 60;
    await land(await admit('/a'), 'new');
    const renewed = (await admit('/a')) as Extract<Admission, { kind: 'kept' }>;
    expect([bodyOf(renewed), bodyOf(await admit('/b'))]).toEqual(['new', 'same']);
    cache.evict(renewed.kept.entry);
    expect([(await admit('/a')).kind, bodyOf(await admit('/b'))]).toEqual(['lead', 'same']);
  });

  it('are not waited for longer than `waitMs`, and serve those who come later', async () => {
    const { admit, land, reasons } = route({ waitMs: 20 });
    const stuck = await admit();
    const waiting = await Promise.all([admit(), admit()]);
    expect(waiting.map(({ kind }) => kind)).toEqual(['alone', 'alone']);
    expect(reasons[0]).toMatch(/more than 20 ms/);
    await land(stuck, 'in the end');
    expect(bodyOf(await admit())).toBe('in the end');
  });

  it('that come late do not replace newer ones', async () => {
    const { admit, land } = route({ waitMs: 5 });
    const late = await admit();
    expect((await admit()).kind).toBe('alone');
    await land(await admit(), 'newer');
    await land(late, 'older');
    expect(bodyOf(await admit())).toBe('newer');
  });

  it('are handed over as often as clients leave', async () => {
    const { admit, land } = route();
    const first = (await admit()) as { flight: SharedFlight };
    const waiting = [admit(), admit()];
    first.flight.close(false);
    const second = (await waiting[0]!) as { flight: SharedFlight };
    second.flight.close(false);
    const third = await waiting[1]!;
    expect(third.kind).toBe('lead');
    await land(third, 'of the third');
    expect(bodyOf(await admit())).toBe('of the third');
  });

  it('are not waited for longer than `waitMs` where the client of the one that makes them has left', async () => {
    const { admit, clock } = route({ waitMs: 600_000 });
    const first = (await admit()) as { flight: SharedFlight };
    const waiting = [admit(), admit()];
    clock.nowMs += 599_990;
    first.flight.close(false);
    expect((await waiting[0]!).kind).toBe('lead');
    expect((await waiting[1]!).kind).toBe('alone');
  });

  it('are not made for clients that have left while they waited', async () => {
    const { admit, land } = route();
    const first = (await admit()) as { flight: SharedFlight };
    const waiting = [admit('/feed', { gone: true }), admit('/feed', { gone: true }), admit()];
    first.flight.close(false);
    const kinds = (await Promise.all(waiting)).map(({ kind }) => kind);
    expect(kinds).toEqual(['gone', 'gone', 'lead']);
    await land(await waiting[2]!, 'x');
  });

  describe.each(['Authorization', 'Cookie', 'unit'] as const)('and callers that are known by `%s`', (sign) => {
    const known = { sign };

    it('are an answer of their own, which serves nobody else', async () => {
      const { admit, land, signs, slots } = route();
      const [one, two] = [await admit('/feed', known), await admit('/feed', known)];
      expect([one.kind, two.kind]).toEqual(['lead', 'lead']);
      expect(await land(one, 'of the first')).toBe(false);
      expect((await admit('/feed', known)).kind).toBe('lead');
      expect((await admit()).kind).toBe('lead');
      expect(signs).toEqual([sign]);
      expect(slots()).toBe(1);
    });

    it('are not the one that nobody in particular has made, nor one that is being made', async () => {
      const { admit, land } = route();
      const leader = await admit();
      expect((await admit('/feed', known)).kind).toBe('lead');
      await land(leader, 'for all without');
      const own = await admit('/feed', known);
      await land(own, 'of one');
      expect([own.kind, bodyOf(await admit())]).toEqual(['lead', 'for all without']);
    });

    it.each(['public', 's-maxage=60'])('share one that says `%s`', async (control) => {
      const { admit, land, signs } = route();
      await land(await admit('/feed', known), 'for all', answer({ 'cache-control': control }));
      expect([bodyOf(await admit('/feed', known)), bodyOf(await admit())]).toEqual(['for all', 'for all']);
      expect(signs).toEqual([]);
    });

    it('share one that is public in the place of an older one that was not', async () => {
      const { admit, land } = route();
      await land(await admit(), 'for all without');
      await land(await admit('/feed', known), 'for all', answer({ 'cache-control': 'public' }));
      expect([bodyOf(await admit('/feed', known)), bodyOf(await admit())]).toEqual(['for all', 'for all']);
    });

    it('get none of what follows a public answer and is not public', async () => {
      const { admit, land, clock } = route();
      await land(await admit('/feed', known), 'for all', answer({ 'cache-control': 'public' }));
      clock.nowMs += 250;
      const leader = await admit();
      const waiting = admit('/feed', known);
      await land(leader, 'for all without');
      expect((await waiting).kind).toBe('lead');
    });

    it('share where `varyBy` or the decorator says so', async () => {
      for (const options of [{ varyBy: () => 'all' }, { forEveryone: true }]) {
        const { admit, land } = route(options);
        await land(await admit('/feed', known), 'for all');
        expect(bodyOf(await admit('/feed', known))).toBe('for all');
      }
    });
  });

  it('are apart by host, whatever its case', async () => {
    const { admit, land } = route();
    await land(await admit('/feed', { host: 'a.test:80' }), 'of a');
    expect(bodyOf(await admit('/feed', { host: 'A.Test:80' }))).toBe('of a');
    for (const host of ['b.test:80', 'a.test', '', 'a.test:80 /feed'])
      expect((await admit('/feed', { host })).kind).toBe('lead');
  });

  it('serve no longer than their own `s-maxage`', async () => {
    const { admit, land, clock } = route({ ttlMs: 60_000 });
    await land(await admit(), 'short', answer({ 'cache-control': 'max-age=0, s-maxage=2' }));
    clock.nowMs += 1_999;
    expect(bodyOf(await admit())).toBe('short');
    clock.nowMs += 1;
    expect((await admit()).kind).toBe('lead');
  });

  it('let what varyBy throws reach the request, and nothing is left behind', async () => {
    const { admit, slots } = route({
      varyBy: () => {
        throw new TypeError('no user');
      },
    });
    await expect(admit()).rejects.toThrow('no user');
    expect(slots()).toBe(0);
  });
});
