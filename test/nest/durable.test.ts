import { Controller, Get, Inject, Injectable, Scope } from '@nestjs/common';
import { type ContextId, ContextIdFactory, type ContextIdStrategy, REQUEST } from '@nestjs/core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { acrossNests } from '../fixtures/app.js';
import { bothForms } from './applications.js';

interface IncomingRequest {
  headers: Record<string, string | undefined>;
}

@Injectable()
class Counter {
  made = 0;
}

/** One tree for each tenant. */
class ByTenant implements ContextIdStrategy<IncomingRequest> {
  private readonly tenants = new Map<string, ContextId>();
  attach(contextId: ContextId, request: IncomingRequest) {
    const tenant = request.headers['x-tenant'];
    if (tenant === undefined) return () => contextId;
    const ofTenant = this.tenants.get(tenant) ?? ContextIdFactory.create();
    this.tenants.set(tenant, ofTenant);
    return {
      resolve: (info: { isTreeDurable: boolean }) => (info.isTreeDurable ? ofTenant : contextId),
      payload: { tenant },
    };
  }
}

@Injectable({ scope: Scope.REQUEST, durable: true })
class DurableService {
  readonly number: number;
  constructor(
    counter: Counter,
    @Inject(REQUEST) readonly payload: { tenant: string },
  ) {
    this.number = counter.made += 1;
  }
}

@Controller({ path: 'durable', scope: Scope.REQUEST, durable: true })
class DurableController {
  private calls = 0;
  constructor(private readonly service: DurableService) {}
  @Get()
  one() {
    this.calls += 1;
    return { tenant: this.service.payload.tenant, number: this.service.number, calls: this.calls };
  }
}

describe.each(acrossNests('fastify'))('durable providers on %s', (adapter) => {
  const previous = (ContextIdFactory as unknown as { strategy?: ContextIdStrategy }).strategy;
  beforeAll(() => ContextIdFactory.apply(new ByTenant()));
  afterAll(() => ContextIdFactory.apply(previous!));
  const { json } = bothForms(adapter, () => ({
    controllers: [DurableController],
    providers: [Counter, DurableService],
  }));

  it('live as long as their tenant', async () => {
    const as = (tenant: string) => json('/durable', { headers: { 'x-tenant': tenant } });
    const first = (await as('a')) as { number: number };
    expect(await as('a')).toEqual({ tenant: 'a', number: first.number, calls: 2 });
    expect(await as('b')).toMatchObject({ tenant: 'b', number: first.number + 1, calls: 1 });
    expect(await as('a')).toEqual({ tenant: 'a', number: first.number, calls: 3 });
  });
});
