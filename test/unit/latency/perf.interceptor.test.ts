import { type CallHandler, type ExecutionContext, BadRequestException } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { Observable, of, throwError } from 'rxjs';
import { expect, it } from 'vitest';
import { OncePerCause } from '../../../src/core/reporter.js';
import { requestContext, type RequestState } from '../../../src/request/request-state.js';
import type { PerfApplication } from '../../../src/request/application.js';
import { RequestTracker } from '../../../src/request/tracker.js';
import { Routes } from '../../../src/request/routes.js';
import { PerfInterceptor } from '../../../src/latency/perf.interceptor.js';
import { SkipPerf } from '../../../src/latency/route.decorators.js';

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
  const routes = new Routes(report);
  const lifecycle = new RequestTracker(() => 0, routes, report);
  lifecycle.pipeline = { started: [], ended: [(state) => void ended.push(state)] };
  const application = { requests: lifecycle, routes } as PerfApplication;
  const interceptor = new PerfInterceptor(application);
  const run = (context: ExecutionContext, handle: CallHandler['handle']) =>
    new Promise<unknown>((resolve) => {
      interceptor.intercept(context, { handle }).subscribe({ error: resolve, complete: () => resolve('complete') });
    });
  return { ended, lifecycle, application, interceptor, run };
}

const outcomes = (ended: RequestState[]) =>
  ended.map(({ route, status, aborted }) => [route?.method, route?.pattern, status, aborted]);

const asked = (operation: string) =>
  contextOf('graphql', {
    parentType: { name: 'Query' },
    fieldName: 'user',
    operation: { name: { value: operation } },
  });

it.each(['rpc', 'ws', 'graphql'])('tells classes that inherit one %s handler apart, whoever is first', async (type) => {
  @SkipPerf()
  class Noisy extends UsersResolver {}
  class Bids extends UsersResolver {}
  for (const order of [
    [Noisy, Bids],
    [Bids, Noisy],
  ]) {
    const { run, ended } = setUp();
    for (const owner of [...order, ...order]) await run(contextOf(type, undefined, owner), () => of(1));
    const seen = ended.map(({ route }) => [route!.handler!.name, route!.handler!.skipped]);
    const expected = order.map((owner) => [`${owner.name}.user`, owner === Noisy]);
    expect(seen).toEqual([...expected, ...expected]);
    expect(ended[0]!.route).toBe(ended[2]!.route);
  }
});

it('measures a call once that is asked for twice, and each attempt of one that is repeated', async () => {
  const { run, ended, application } = setUp();
  const inner = new PerfInterceptor(application);
  const context = contextOf('rpc');
  for (let i = 1; i <= 2; i++) {
    await run(context, () => inner.intercept(context, { handle: () => of(1) }));
    expect(ended).toHaveLength(i);
  }
});

it('names the operation that asked, one row each', async () => {
  const { run, ended } = setUp();
  for (const operation of ['GetUser', 'Profile', 'GetUser']) await run(asked(operation), () => of(1));
  expect(outcomes(ended).map(([, pattern]) => pattern)).toEqual([
    'Query.user (GetUser)',
    'Query.user (Profile)',
    'Query.user (GetUser)',
  ]);
  expect(ended[0]!.route).toBe(ended[2]!.route);
});

it('makes no rows without bound of names that clients invent', async () => {
  const { run, ended } = setUp();
  for (let i = 0; i < 500; i++) await run(asked(`made${i}`), () => of(1));
  await run(asked('x'.repeat(5_000)), () => of(1));
  expect(new Set(ended.map(({ route }) => route!.pattern)).size).toBe(101);
  expect(ended.at(-1)!.route!.pattern).toBe('Query.user');
});

it('counts an HTTP exception under its own status, any other as 500', async () => {
  const { run, ended } = setUp();
  await run(contextOf('rpc'), () => throwError(() => new BadRequestException()));
  await run(contextOf('rpc'), () => throwError(() => new Error('broken')));
  expect(ended.map(({ status }) => status)).toEqual([400, 500]);
});

it('ends the scope of a handler that throws before it returns its Observable', async () => {
  const { run, ended, lifecycle } = setUp();
  const broken = new Error('thrown, not emitted');
  const seen = await run(contextOf('rpc'), () => {
    throw broken;
  });
  expect(seen).toBe(broken);
  expect(outcomes(ended)).toEqual([['RPC', 'UsersResolver.user', 500, false]]);
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
