import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { RequestState, requestContext } from '../../../src/request/request-state.js';
import { UpstreamObserver } from '../../../src/upstream/upstream-observer.js';

/** A pool of pg that lends when it is told to. */
class Pool extends EventEmitter {
  readonly totalCount = 1;
  readonly idleCount = 0;
  readonly waitingCount = 0;
  lend = (_client: object): void => {};
  query() {}
  connect(): Promise<object> {
    return new Promise((resolve) => (this.lend = resolve));
  }
}

it('a wait and a call of a resolver are of the resolver and of its request', async () => {
  let now = 0;
  const owner = { findRoute: () => null } as never;
  const feature = new UpstreamObserver(
    { target: null, maxTargets: 10, maxTimedCalls: 10 },
    { requests: owner, nowMs: () => now, report: { report() {} } } as never,
    null,
  );
  const request = new RequestState(null, null, 0, owner);
  const resolver = new RequestState(null, null, 0, owner);
  resolver.within = request;
  for (const state of [request, resolver]) feature.started(state);
  const pool = new Pool();
  feature.watch(pool);
  await requestContext.run(resolver, async () => {
    const lent = pool.connect();
    now = 10;
    pool.lend({});
    await lent;
    let done = (): void => {};
    const called = feature.timed('s3 uploads', () => new Promise<void>((resolve) => (done = resolve)));
    now = 15;
    done();
    await called;
  });
  for (const state of [resolver, request]) {
    state.closed = true;
    state.endedMs = 20;
    feature.ended(state);
    expect(state.timing!.time).toMatchObject({ poolWaitMs: 10, upstreamMs: 5, unplacedCalls: 0 });
    expect(state.timing!.upstream).toMatchObject([{ target: 's3 uploads', calls: 1, wallMs: 5 }]);
  }
  feature.drain();
});
