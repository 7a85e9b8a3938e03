import { type CallHandler, Controller, Inject, Param, Post, Req } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { defer, from, lastValueFrom, of } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import { Deferrer, PerfInterceptor, PerfService } from '../../src/index.js';
import { adapters, startApp, type TestApp } from '../fixtures/app.js';
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

const FIELDS = Array.from({ length: 30 }, (_, i) => `field${i}`);
class WideResolver {}
for (const field of FIELDS) Object.defineProperty(WideResolver.prototype, field, { value: () => field });

/** A query of every field, by the name that its client has chosen. */
@Controller('graphql')
class WideController {
  constructor(@Inject(PerfInterceptor) private readonly interceptor: PerfInterceptor) {}

  @Post(':operation')
  async query(@Req() req: object, @Param('operation') operation: string) {
    for (const fieldName of FIELDS) {
      const info = { parentType: { name: 'Query' }, fieldName, operation: { name: { value: operation } } };
      const field = Reflect.get(WideResolver.prototype, fieldName) as () => string;
      const context = new ExecutionContextHost([undefined, {}, { req }, info], WideResolver, field);
      context.setType('graphql');
      await lastValueFrom(this.interceptor.intercept(context, { handle: () => of(field()) }));
    }
    return {};
  }
}

describe.each(adapters)('PerfInterceptor on a resolver over HTTP, on %s', (adapter) => {
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
    const notes = (await test.requests()).map(({ method, note }) => [method, note?.rows ?? null]);
    expect(notes).toEqual([
      ['POST', null],
      ['GRAPHQL', 3],
    ]);
    const rows = test.app
      .get(PerfService)
      .snapshot()
      .routes.filter(({ count }) => count > 0);
    expect(rows.map(({ method, route }) => `${method} ${route}`).sort()).toEqual([
      'GRAPHQL Query.report',
      'POST /graphql',
    ]);
    const { routes } = test.app
      .get(PerfService)
      .snapshot()
      .upstream.find(({ target }) => target === 'reports')!;
    expect(routes.map(({ route }) => route)).toEqual(['POST /graphql']);
  });

  it('keeps to 1,000 rows of operations, whatever clients call them; further ones share the row of their resolver', async () => {
    test = await startApp(adapter, {
      perf: { eventLoop: false, history: false },
      metadata: { controllers: [WideController], providers: [PerfInterceptor] },
    });
    const operations = Array.from({ length: 90 }, (_, i) => `Q${i}`);
    for (const operation of operations) await fetch(`${test.url}/graphql/${operation}`, { method: 'POST' });
    await test.requests();
    const rows = test.app
      .get(PerfService)
      .snapshot()
      .routes.filter(({ method }) => method === 'GRAPHQL');
    const named = rows.filter(({ route }) => route.includes('('));
    expect([named.length, rows.length - named.length]).toEqual([1_000, FIELDS.length]);
    expect(rows.reduce((sum, { count }) => sum + count, 0)).toBe(operations.length * FIELDS.length);
    // Known ones go on being counted by their operation.
    await fetch(`${test.url}/graphql/Q0`, { method: 'POST' });
    await test.requests();
    const first = test.app
      .get(PerfService)
      .snapshot()
      .routes.find(({ route }) => route === 'Query.field0 (Q0)');
    expect(first?.count).toBe(2);
  });
});
