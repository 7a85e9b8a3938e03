import type { CallHandler, ExecutionContext } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { lastValueFrom, Observable, of } from 'rxjs';
import { expect, it } from 'vitest';
import { OncePerCause } from '../../../src/core/reporter.js';
import { requestContext, type RequestState } from '../../../src/request/request-state.js';
import type { PerfApplication } from '../../../src/request/application.js';
import { RequestTracker } from '../../../src/request/tracker.js';
import { Routes } from '../../../src/request/routes.js';
import { PerfInterceptor } from '../../../src/work/perf.interceptor.js';
import { SkipPerf } from '../../../src/latency/route.decorators.js';
import { WorkFeature } from '../../../src/work/work.feature.js';

class UsersResolver {
  user(this: void) {}
}

function contextOf(type: string, info?: object, owner = UsersResolver): ExecutionContext {
  const context = new ExecutionContextHost([undefined, {}, {}, info], owner, owner.prototype.user);
  context.setType(type);
  return context;
}

function setUp() {
  const ended: RequestState[] = [];
  const report = new OncePerCause({ log() {}, warn() {}, error() {} }, () => 0);
  const routes = new Routes();
  const lifecycle = new RequestTracker(() => 0, routes, report);
  lifecycle.pipeline = { started: [], ended: [(state) => void ended.push(state)] };
  const recorder = { wanted: false };
  const application = { requests: lifecycle, routes, recorder, enabled: true, nowMs: () => 0 } as PerfApplication;
  const work = new WorkFeature(false, application, null);
  const interceptor = new PerfInterceptor(work);
  const run = (context: ExecutionContext, handle: CallHandler['handle']) =>
    new Promise<unknown>((resolve) => {
      interceptor.intercept(context, { handle }).subscribe({ error: resolve, complete: () => resolve('complete') });
    });
  return { ended, lifecycle, work, interceptor, run };
}

const outcomes = (ended: RequestState[]) =>
  ended.map(({ route, status, aborted }) => [route?.method, route?.pattern, status, aborted]);

it.each(['rpc', 'ws', 'graphql'])('tells classes that inherit one %s handler apart, whoever is first', async (type) => {
  class Noisy extends UsersResolver {}
  class Bids extends UsersResolver {}
  for (const order of [
    [Noisy, Bids],
    [Bids, Noisy],
  ]) {
    const { run, ended } = setUp();
    for (const owner of [...order, ...order]) await run(contextOf(type, undefined, owner), () => of(1));
    const seen = ended.map(({ route }) => route!.handler!.name);
    const expected = order.map((owner) => `${owner.name}.user`);
    expect(seen).toEqual([...expected, ...expected]);
    expect(ended[0]!.route).toBe(ended[2]!.route);
  }
});

it('measures a call once that is asked for twice, and each attempt of one that is repeated', async () => {
  const { run, ended, work } = setUp();
  const inner = new PerfInterceptor(work);
  const context = contextOf('rpc');
  for (let i = 1; i <= 2; i++) {
    await run(context, () => inner.intercept(context, { handle: () => of(1) }));
    expect(ended).toHaveLength(i);
  }
});

it('leaves out what is not to be measured', async () => {
  @SkipPerf()
  class Quiet extends UsersResolver {}
  const { run, ended } = setUp();
  expect(await run(contextOf('rpc', undefined, Quiet), () => of(1))).toBe('complete');
  expect(ended).toEqual([]);
});

it('ends the scope of a handler that throws before it returns its Observable', async () => {
  const { run, ended, lifecycle } = setUp();
  const broken = new Error('thrown, not emitted');
  const seen = await run(contextOf('rpc'), () => {
    throw broken;
  });
  expect(seen).toBe(broken);
  expect(outcomes(ended)).toEqual([['MESSAGE', 'UsersResolver.user', 500, false]]);
  expect(lifecycle.inFlight).toBe(0);
});

it('enters the context inside subscribe and leaves the caller outside of it', async () => {
  const { interceptor } = setUp();
  const seen: unknown[] = [];
  const answer = new Observable((subscriber) => {
    seen.push(requestContext.getStore()?.route?.pattern);
    subscriber.complete();
  });
  const measured = interceptor.intercept(contextOf('ws'), { handle: () => answer });
  expect(requestContext.getStore()).toBeUndefined();
  expect(seen).toEqual([]);
  measured.subscribe();
  expect(seen).toEqual(['UsersResolver.user']);
  expect(requestContext.getStore()).toBeUndefined();
});

it('ends with the promise that an interceptor emits, which Nest awaits, as of a transaction', async () => {
  const { interceptor, ended, lifecycle } = setUp();
  for (const broken of [null, new Error('rolled back')]) {
    let finish = (): void => {};
    const transaction = new Promise<string>((resolve, reject) => {
      finish = () => (broken === null ? resolve('placed') : reject(broken));
    });
    const measured = interceptor.intercept(contextOf('graphql'), { handle: () => of(transaction) });
    const settled = lastValueFrom(measured).catch((error: unknown) => error);
    await new Promise((resolve) => setImmediate(resolve));
    expect(ended).toEqual([]);
    finish();
    expect(await settled).toBe(broken ?? 'placed');
    expect(outcomes(ended.splice(0))).toEqual([['GRAPHQL', 'UsersResolver.user', broken === null ? 200 : 500, false]]);
    expect(lifecycle.inFlight).toBe(0);
  }
});
