import type { IncomingMessage, ServerResponse } from 'node:http';
import { type CallHandler, Controller, Inject, Injectable, Post, Req } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { defer, from, lastValueFrom } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import { Deferrer, Measured, PerfInterceptor, PerfService } from '../../src/index.js';
import { acrossNests, startApp, type TestApp } from '../fixtures/app.js';
import { until } from '../fixtures/until.js';

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const steps: string[] = [];

class ReportsResolver {
  report(this: void) {}
}

/** What a GraphQL server does with one query: the resolver first, then the rest of the answer. */
@Controller('graphql')
class GraphQLController {
  constructor(
    @Inject(PerfInterceptor) private readonly interceptor: PerfInterceptor,
    @Inject(Deferrer) private readonly deferrer: Deferrer,
    @Inject(PerfService) private readonly perf: PerfService,
  ) {}

  @Post()
  async query(@Req() req: object) {
    const info = { parentType: { name: 'Query' }, fieldName: 'report' };
    const { report } = ReportsResolver.prototype;
    const context = new ExecutionContextHost([undefined, {}, { req }, info], ReportsResolver, report);
    context.setType('graphql');
    const next: CallHandler = { handle: () => defer(() => from(this.report())) };
    const data: unknown = await lastValueFrom(this.interceptor.intercept(context, next));
    await pause(40);
    steps.push('answered');
    return { data };
  }

  private async report() {
    this.deferrer.defer(({ status }) => void steps.push(`deferred ${status}`));
    await this.perf.timed('reports', () => pause(60));
    this.perf.note({ rows: 3 });
    steps.push('resolved');
    return 'report';
  }
}

describe.each(acrossNests('fastify'))('PerfInterceptor on a resolver over HTTP, on %s', (adapter) => {
  let test: TestApp;
  afterEach(() => test.close());

  it('measures it, and leaves its work to the HTTP request', async () => {
    steps.length = 0;
    test = await startApp(adapter, {
      metadata: { controllers: [GraphQLController], providers: [PerfInterceptor] },
    });
    expect(await (await fetch(`${test.url}/graphql`, { method: 'POST' })).json()).toEqual({ data: 'report' });
    await until('the deferred work', () => steps.length === 3);
    expect(steps).toEqual(['resolved', 'answered', 'deferred 201']);
    const [request] = await test.requests();
    const [part] = test.sink.records.filter((record) => record.kind === 'work');
    expect([request!.method, request!.note, request!.upstream![0]!.calls]).toEqual(['POST', null, 1]);
    expect(part).toMatchObject({ type: 'graphql', name: 'ReportsResolver.report', outcome: 'completed' });
    expect(part!.upstream).toMatchObject([{ target: 'reports', calls: 1 }]);
    const rows = test.app
      .get(PerfService)
      .snapshot()
      .routes.filter(({ count }) => count > 0);
    expect(rows.map(({ method, route }) => `${method} ${route}`).sort()).toEqual([
      'GRAPHQL ReportsResolver.report',
      'POST /graphql',
    ]);
    const { routes } = test.app
      .get(PerfService)
      .snapshot()
      .upstream.find(({ target }) => target === 'reports')!;
    expect(routes.map(({ route }) => route).toSorted()).toEqual(['GRAPHQL ReportsResolver.report', 'POST /graphql']);
  });
});

@Injectable()
class ShopResolver {
  @Measured()
  async order() {
    await pause(20);
  }
  @Measured()
  user() {}
}

it('names the resolver that took longest for a request that no controller answers', async () => {
  const test = await startApp('express', {
    metadata: { providers: [ShopResolver] },
    beforeInit: (nest) => {
      const shop = nest.get(ShopResolver);
      nest.use('/graphql', (_request: IncomingMessage, response: ServerResponse) => {
        shop.user();
        void shop.order().then(() => {
          shop.user();
          response.end('{}');
        });
      });
    },
  });
  await (await fetch(`${test.url}/graphql`, { method: 'POST' })).text();
  const [request] = await test.requests();
  expect(request).toMatchObject({ route: '/graphql', handler: 'ShopResolver.order' });
  await test.close();
});
