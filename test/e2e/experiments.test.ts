import { setTimeout as delay } from 'node:timers/promises';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Inject,
  Injectable,
  Param,
  Post,
  Scope,
  UseGuards,
} from '@nestjs/common';
import { describe, expect, it, vi } from 'vitest';
import {
  Experiment,
  Experiments,
  type GateClient,
  mergeTotals,
  type PerfModuleOptions,
  staticGates,
  Variant,
} from '../../src/index.js';
import { type Adapter, adapters, startApp, type TestApp } from '../fixtures/app.js';

/** Every user whose name ends in an even digit. */
const evenUsers: GateClient = {
  check: (gate, { userId }) => {
    if (gate === 'broken') throw new Error('the client broke');
    if (gate === 'unready') return { on: false, problem: 'not initialised' };
    return { on: Number(userId.at(-1)) % 2 === 0, rule: 'even' };
  },
};

/** Like a real authentication guard: the user is known after it. */
@Injectable()
class UserGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<{ headers: Record<string, string>; user?: { id: string } }>();
    const id = request.headers['x-user'];
    if (id !== undefined) request.user = { id };
    return true;
  }
}

@Injectable()
class PriceService {
  constructor(@Inject(Experiments) readonly experiments: Experiments) {}
  async price(gate: string): Promise<boolean> {
    await delay(1);
    return this.experiments.check(gate);
  }
}

@Controller()
@UseGuards(UserGuard)
class ShopController {
  constructor(@Inject(PriceService) private readonly prices: PriceService) {}

  @Get('decorated/:id')
  @Experiment('even')
  decorated(@Param('id') id: string, @Variant('even') variant: string) {
    return { id, variant };
  }

  @Get('service/:gate')
  async service(@Param('gate') gate: string) {
    return { on: await this.prices.price(gate), again: await this.prices.price(gate) };
  }

  @Post('fails')
  @Experiment('even')
  fails(): never {
    throw new Error('on purpose');
  }

  @Get('unnamed')
  unnamed() {
    const { experiments } = this.prices;
    return [undefined, null, 7, Symbol('even')].map((gate) => experiments.check(gate as never));
  }

  @Get('plain')
  plain() {
    return 'plain';
  }
}

@Controller({ path: 'scoped', scope: Scope.REQUEST })
@UseGuards(UserGuard)
@Experiment('even')
class ScopedController {
  @Get()
  get(@Variant('even') variant: string) {
    return { variant };
  }
}

const metadata = { controllers: [ShopController, ScopedController], providers: [PriceService] };
const as = (user: string): RequestInit => ({ headers: { 'x-user': user } });

async function start(adapter: Adapter, experiments: PerfModuleOptions['experiments'] = { gates: evenUsers }) {
  const warnings: string[] = [];
  const logger = { log: () => {}, error: () => {}, warn: (message: string) => void warnings.push(message) };
  const running: TestApp = await startApp(adapter, { metadata, perf: { experiments }, nest: { logger } });
  // A record that waits for a verdict on the event loop may come after one that started later.
  const requests = async () => (await running.requests()).sort((a, b) => a.startedAt - b.startedAt);
  return { ...running, requests, warnings, experiments: running.app.get(Experiments, { strict: false }) };
}

const json = async (response: Promise<Response>): Promise<unknown> => (await response).json();

describe.each(adapters)('experiments on %s', (adapter) => {
  it('decide before the handler, hand the variant over, and write it on the record', async () => {
    const { url, requests, close } = await start(adapter);
    expect(await json(fetch(`${url}/decorated/7`, as('u2')))).toEqual({ id: '7', variant: 'on' });
    expect(await json(fetch(`${url}/decorated/8`, as('u3')))).toEqual({ id: '8', variant: 'off' });
    expect(await json(fetch(`${url}/scoped`, as('u4')))).toEqual({ variant: 'on' });
    await fetch(`${url}/fails`, { method: 'POST', ...as('u5') });
    await fetch(`${url}/plain`, as('u6'));
    const records = await requests();
    await close();
    expect(records.map(({ route, variants, unit }) => [route, variants, unit?.userId])).toEqual([
      ['/decorated/:id', { even: 'on' }, 'u2'],
      ['/decorated/:id', { even: 'off' }, 'u3'],
      ['/scoped', { even: 'on' }, 'u4'],
      ['/fails', { even: 'off' }, 'u5'],
      ['/plain', null, 'u6'],
    ]);
  });

  it('answer check() anywhere below the handler, the same for the whole request', async () => {
    const { url, requests, close } = await start(adapter);
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, i) => json(fetch(`${url}/service/even`, as(`user-${i}`)))),
    );
    const records = await requests();
    await close();
    expect(answers).toEqual(Array.from({ length: 40 }, (_, i) => ({ on: i % 2 === 0, again: i % 2 === 0 })));
    for (const { variants, unit } of records) {
      expect(variants).toEqual({ even: Number(unit!.userId.at(-1)) % 2 === 0 ? 'on' : 'off' });
    }
    expect(records).toHaveLength(40);
  });

  it('use the request id as unit when nobody is known', async () => {
    const { url, requests, close } = await start(adapter);
    await fetch(`${url}/decorated/1`, { headers: { 'x-request-id': 'request-8' } });
    const [record] = await requests();
    await close();
    expect(record).toMatchObject({ unit: { userId: 'request-8' }, variants: { even: 'on' } });
  });

  it('take the unit that the application tells, and stand by the request id when it tells none', async () => {
    let calls = 0;
    const { url, requests, close, warnings } = await start(adapter, {
      gates: evenUsers,
      unit: (request) => {
        calls += 1;
        const name = (request as { headers: Record<string, string> }).headers['x-tenant'];
        if (name === undefined) throw new Error('no tenant');
        return { userId: name, customIds: { podId: 'pod-1' } };
      },
    });
    await fetch(`${url}/service/even`, { headers: { 'x-tenant': 'acme-4' } });
    await fetch(`${url}/service/even`, { headers: { 'x-request-id': 'r-1' } });
    const records = await requests();
    await close();
    expect(records.map(({ unit }) => unit)).toEqual([
      { userId: 'acme-4', customIds: { podId: 'pod-1' } },
      { userId: 'r-1' },
    ]);
    expect(calls).toBe(2);
    expect(warnings.filter((warning) => warning.includes('experiments.unit() threw: no tenant'))).toHaveLength(1);
  });

  it('are off for a gate that throws, is unknown or not ready; say each once, and compare none of them', async () => {
    const { url, requests, close, warnings, experiments } = await start(adapter);
    for (const gate of ['broken', 'broken', 'unready', 'broken']) {
      expect(await json(fetch(`${url}/service/${gate}`, as('u2')))).toEqual({ on: false, again: false });
    }
    const records = await requests();
    const totals = experiments.totals();
    await close();
    expect(records.map(({ variants }) => variants)).toEqual([
      { broken: 'off' },
      { broken: 'off' },
      { unready: 'off' },
      { broken: 'off' },
    ]);
    expect(totals.gates).toEqual([]);
    const about = (text: string): number =>
      warnings.filter((warning) => warning.includes(text) && !warning.includes('more since')).length;
    expect([about('`broken`: the client broke'), about('`unready`: not initialised')]).toEqual([1, 1]);
    expect(warnings.find((warning) => warning.includes('more since') && warning.includes('broken'))).toContain(
      '2 more',
    );
  });

  it('answer check() without a name with false, whoever decides', async () => {
    const { url, requests, close, warnings } = await start(adapter, { gates: { check: () => ({ on: true }) } });
    expect(await json(fetch(`${url}/unnamed`, as('u2')))).toEqual([false, false, false, false]);
    const [record] = await requests();
    await close();
    expect(record!.variants).toBeNull();
    expect(warnings).toContainEqual('Experiments.check() without the name of a gate, got `undefined`: it is false.');
  });

  it('sum up requests, failures and units per route and variant', async () => {
    const { url, requests, close, experiments } = await start(adapter);
    for (let i = 0; i < 30; i++) await fetch(`${url}/decorated/1`, as(`u${i % 10}`));
    for (let i = 0; i < 12; i++) await fetch(`${url}/fails`, { method: 'POST', ...as(`u${i % 6}`) });
    await fetch(`${url}/plain`);
    await requests();
    const latency = experiments.report('even', { route: 'GET /decorated/:id' });
    const errors = experiments.report('even', { route: '/fails', metric: 'errors' });
    const all = experiments.report('even', { metric: 'errors' });
    const nothing = experiments.report('even', { route: '/plain' });
    const failed = experiments.report('even', { route: '/fails' });
    await close();
    expect(latency.comparison).toMatchObject({ treatment: { units: 5, count: 15 }, control: { units: 5, count: 15 } });
    expect(latency.text).toMatch(
      /^even on GET \/decorated\/:id: latency -?\d+\.\d+ % \(95 % CI .* … .*\), p .*, 5 \/ 5 units, MDE .*; errors unchanged; sample ratio ok; .* over all routes$/,
    );
    expect(latency.caveats.join('\n')).toContain('Too few units: 5 on, 5 off');
    expect(errors.comparison).toMatchObject({
      treatment: { units: 3, count: 6, mean: 1 },
      control: { mean: 1 },
      relativeDelta: 0,
      pValue: 1,
    });
    expect(all.comparison?.treatment).toEqual({ units: 5, count: 21, mean: 6 / 21 });
    expect(nothing).toMatchObject({
      comparison: null,
      text: 'even on /plain: latency unknown: no request has checked the gate',
    });
    expect(failed).toMatchObject({
      comparison: null,
      text: 'even on /fails: latency unknown: too few units: 3 on, 3 off',
    });
  });

  it('leave out what was aborted and what was skipped', async () => {
    const { url, requests, close, experiments } = await start(adapter);
    const leaving = new AbortController();
    const left = fetch(`${url}/service/even`, { ...as('u2'), signal: leaving.signal }).catch(() => 'left');
    leaving.abort();
    expect(await left).toBe('left');
    await fetch(`${url}/service/even`, as('u4'));
    await requests();
    const on = experiments.totals().gates[0]!.routes[0]!.on;
    await close();
    expect(on.buckets.reduce((sum, row) => sum + row[1]!, 0)).toBe(1);
  });

  it('are injectable when off: check() is false, @Variant is off, nothing is written', async () => {
    const { url, requests, close, experiments } = await start(adapter, false);
    expect(await json(fetch(`${url}/decorated/1`, as('u2')))).toEqual({ id: '1', variant: 'off' });
    expect(await json(fetch(`${url}/service/even`, as('u2')))).toEqual({ on: false, again: false });
    const records = await requests();
    await close();
    expect(records.map(({ variants }) => variants)).toEqual([null, null]);
    expect(experiments.report('even').text).toBe('even: latency unknown: the feature `experiments` is off');
    expect(experiments.totals()).toEqual(mergeTotals());
  });

  it('keep two applications of one process apart', async () => {
    const first = await start(adapter, { gates: staticGates({ even: true }) });
    const second = await start(adapter, { gates: staticGates({ even: false }) });
    const third = await start(adapter, false);
    const variants = await Promise.all(
      [first, second, third].map(({ url }) => json(fetch(`${url}/decorated/1`, as('u1')))),
    );
    expect(variants.map((answer) => (answer as { variant: string }).variant)).toEqual(['on', 'off', 'off']);
    await Promise.all([first, second, third].map(({ close }) => close()));
  });

  it('close the gate client once, after the last request', async () => {
    const events: string[] = [];
    const { url, close } = await start(adapter, {
      gates: {
        check: () => {
          events.push('check');
          return { on: true };
        },
        close: async () => void events.push('close'),
      },
    });
    await fetch(`${url}/decorated/1`, as('u1'));
    await close();
    expect(events).toEqual(['check', 'close']);
  });

  it('collect a pre-period while the gates are still shut, and use it', async () => {
    const prePeriodMs = 600_000;
    const { url, requests, close, experiments } = await start(adapter, { gates: evenUsers, prePeriodMs });
    const visits = (): Promise<unknown[]> =>
      Promise.all(Array.from({ length: 20 }, (_, i) => json(fetch(`${url}/decorated/1`, as(`u${i}`)))));
    expect(new Set((await visits()).map((answer) => (answer as { variant: string }).variant))).toEqual(
      new Set(['off']),
    );
    await requests();
    expect(experiments.totals().gates).toEqual([]);
    const realNow = performance.now.bind(performance);
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => realNow() + prePeriodMs);
    await visits();
    await visits();
    await requests();
    const route = experiments.totals().gates[0]!.routes[0]!;
    await close();
    clock.mockRestore();
    for (const { buckets } of [route.on, route.off]) {
      expect(buckets.reduce((sum, row) => sum + row[1]!, 0)).toBe(20);
      expect(buckets.reduce((sum, row) => sum + row[7]!, 0)).toBe(10);
      for (const row of buckets) expect(row[8]).toBeGreaterThan(0);
    }
  });
});
