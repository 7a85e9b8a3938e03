import { describe, expect, it } from 'vitest';
import { Compressor } from '../../../../src/compression/codec/compressor.js';
import { ContentCache } from '../../../../src/compression/cache/content-cache.js';
import type { Exchange } from '../../../../src/compression/exchange.js';
import type { FieldValue } from '../../../../src/compression/rules/field-value.js';
import { Governor } from '../../../../src/compression/codec/governor.js';
import {
  SharedRoute,
  type Admission,
  type SharedFlight,
} from '../../../../src/compression/shared-response/shared-route.js';

const compressor = new Compressor({ zstd: null, br: null, gzip: null }, new Governor(1));

function answer(headers: Record<string, FieldValue> = {}, status = 200): Exchange {
  const head: Record<string, FieldValue> = { 'content-type': 'application/json', ...headers };
  return {
    method: 'GET',
    gone: false,
    shared: null,
    tags: true,
    status,
    requestHeader: () => undefined,
    header: (name) => head[name],
    headers: () => head,
    set: () => {},
    remove: () => {},
  };
}

/** A route with a clock of its own. */
function route(options: { ttlMs?: number; varyBy?: (request: any) => string; maxBytes?: number } = {}) {
  const clock = { nowMs: 1_000 };
  const reasons: string[] = [];
  const cache = new ContentCache(options.maxBytes ?? 1_000_000);
  const { varyBy } = options;
  const shared = new SharedRoute(
    { ttlMs: options.ttlMs ?? 100, ...(varyBy === undefined ? {} : { varyBy }) },
    () => clock.nowMs,
    (reason) => reasons.push(reason),
  );
  const admit = async (url = '/feed', request: unknown = {}, before = {}): Promise<Admission> =>
    shared.admit('GET', url, request, () => before);
  const land = async (admission: Admission, body: string, exchange = answer()): Promise<boolean> => {
    const { flight } = admission as { flight: SharedFlight };
    const kept = flight.keep(exchange, body, cache);
    if (kept !== null) await flight.publish(kept, compressor);
    return kept !== null;
  };
  const slots = (): number => (shared as unknown as { slots: Map<string, unknown> }).slots.size;
  return { clock, reasons, cache, admit, land, slots };
}

const bodyOf = (admission: Admission): unknown =>
  admission.kind === 'kept' ? admission.kept.entry.source : admission.kind;

describe('shared answers of a route', () => {
  it('serve everybody for the TTL, then somebody makes the next', async () => {
    const { clock, admit, land } = route();
    await land(await admit(), 'first');
    clock.nowMs += 99;
    expect(bodyOf(await admit())).toBe('first');
    clock.nowMs += 1;
    expect((await admit()).kind).toBe('lead');
  });

  it('are made by one request while the others wait for it', async () => {
    const { admit, land } = route();
    const leader = await admit();
    const waiting = Promise.all(Array.from({ length: 20 }, () => admit()));
    await land(leader, 'one');
    expect((await waiting).map(bodyOf)).toEqual(Array(20).fill('one'));
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

  it('are told apart by URL and by varyBy, whatever the strings hold', async () => {
    const { admit, land } = route({ varyBy: (request) => (request as { user: string }).user });
    await land(await admit('/a', { user: 'x' }), 'a for x');
    expect((await admit('/a', { user: 'y' })).kind).toBe('lead');
    expect((await admit('/a?b', { user: 'x' })).kind).toBe('lead');
    expect(bodyOf(await admit('/a', { user: 'x' }))).toBe('a for x');
  });

  it.each([
    ['an error', answer({}, 500)],
    ['a cookie', answer({ 'set-cookie': 'sid=1' })],
    ['private', answer({ 'cache-control': 'private' })],
    ['no-store', answer({ 'cache-control': 'no-store' })],
    ['an encoded body', answer({ 'content-encoding': 'gzip' })],
    ['Vary on a request header', answer({ vary: 'Accept-Language' })],
    ['Vary on everything', answer({ vary: '*' })],
  ])('are never kept with %s: who waited runs alone, the next one leads', async (_what, exchange) => {
    const { admit, land, slots } = route();
    const leader = await admit();
    const waiting = admit();
    expect(await land(leader, 'no', exchange)).toBe(false);
    expect((await waiting).kind).toBe('alone');
    expect(slots()).toBe(0);
    expect((await admit()).kind).toBe('lead');
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
    await land(await admit('/feed', {}, before), 'x', answer({ ...before, 'x-feed': 'v7', 'content-length': '1' }));
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
