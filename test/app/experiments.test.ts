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
import { describe, expect, it } from 'vitest';
import {
  Experiment,
  Experiments,
  type GateClient,
  mergeTotals,
  type PerfModuleOptions,
  staticGates,
  Variant,
} from '../../src/index.js';
import { type Adapter, either, startApp, type TestApp } from '../fixtures/app.js';

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

const json = async (response: Promise<Response>): Promise<Record<string, unknown>> =>
  (await (await response).json()) as Record<string, unknown>;

describe.each(either('express'))('experiments on %s', (adapter) => {
  it('decide before the handler, hand the variant over, and write it on the record', async () => {
    const { url, requests, close } = await start(adapter);
    expect(await json(fetch(`${url}/decorated/7`, as('u2')))).toEqual({ id: '7', variant: 'on' });
    expect(await json(fetch(`${url}/decorated/8`, as('u3')))).toEqual({ id: '8', variant: 'off' });
    expect(await json(fetch(`${url}/scoped`, as('u4')))).toEqual({ variant: 'on' });
    await fetch(`${url}/fails`, { method: 'POST', ...as('u5') });
    await fetch(`${url}/plain`, as('u6'));
    await fetch(`${url}/decorated/9`, { headers: { 'x-request-id': 'request-8' } });
    const records = await requests();
    await close();
    expect(records.map(({ route, variants, unit }) => [route, variants, unit?.userId])).toEqual([
      ['/decorated/:id', { even: 'on' }, 'u2'],
      ['/decorated/:id', { even: 'off' }, 'u3'],
      ['/scoped', { even: 'on' }, 'u4'],
      ['/fails', { even: 'off' }, 'u5'],
      ['/plain', null, 'u6'],
      // Nobody is known: the unit is the request.
      ['/decorated/:id', { even: 'on' }, 'request-8'],
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
    for (const { variants, unit } of records)
      expect(variants).toEqual({ even: Number(unit!.userId.at(-1)) % 2 === 0 ? 'on' : 'off' });
    expect(records).toHaveLength(40);
  });

  it('take the unit that the application tells, and stand by the request id when it tells none', async () => {
    const { url, requests, close, warnings } = await start(adapter, {
      gates: evenUsers,
      unit: ({ headers }) => {
        if (headers['x-tenant'] === undefined) throw new Error('no tenant');
        return { userId: String(headers['x-tenant']), customIds: { podId: 'pod-1' } };
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
    expect(warnings.filter((warning) => warning.includes('experiments.unit() threw: no tenant'))).toHaveLength(1);
  });

  it('are off for a gate that throws, is unknown or not ready; say each once, and compare none of them', async () => {
    const { url, requests, close, warnings, experiments } = await start(adapter);
    for (const gate of ['broken', 'broken', 'unready'])
      expect(await json(fetch(`${url}/service/${gate}`, as('u2')))).toEqual({ on: false, again: false });
    const records = await requests();
    expect(experiments.totals().gates).toEqual([]);
    await close();
    expect(records.map(({ variants }) => variants)).toEqual([{ broken: 'off' }, { broken: 'off' }, { unready: 'off' }]);
    expect(warnings.filter((warning) => warning.startsWith('gate '))).toEqual([
      'gate `broken`: the client broke. Such requests run as "off" and are not compared.',
      'gate `unready`: not initialised. Such requests run as "off" and are not compared.',
      'gate `broken`: the client broke: 1 more since it was last reported.',
    ]);
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
    await close();
    expect(latency.comparison).toMatchObject({ treatment: { units: 5, count: 15 }, control: { units: 5, count: 15 } });
    expect(latency.text).toMatch(
      /^even on GET \/decorated\/:id: latency [-+]?\d+\.\d+ % \(95 % CI .* … .*\), p .*, 5 \/ 5 units, MDE .*; errors unchanged; sample ratio ok$/,
    );
    expect(latency.caveats.join('\n')).toContain('Too few units: 5 on, 5 off');
    expect(errors.comparison).toMatchObject({ treatment: { units: 3, count: 6, mean: 1 }, control: { mean: 1 } });
    expect([errors.comparison!.relativeDelta, errors.comparison!.pValue]).toEqual([0, 1]);
    expect(all.comparison?.treatment).toEqual({ units: 5, count: 21, mean: 6 / 21 });
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
    const given = [{ gates: staticGates({ even: true }) }, { gates: staticGates({ even: false }) }, false as const];
    const apps = await Promise.all(given.map((experiments) => start(adapter, experiments)));
    const answers = await Promise.all(apps.map(({ url }) => json(fetch(`${url}/decorated/1`, as('u1')))));
    expect(answers.map(({ variant }) => variant)).toEqual(['on', 'off', 'off']);
    await Promise.all(apps.map(({ close }) => close()));
  });

  it('close the gate client once, after the last request', async () => {
    const events: string[] = [];
    const check = () => ({ on: events.push('check') > 0 });
    const gates: GateClient = { check, close: async () => void events.push('close') };
    const { url, close } = await start(adapter, { gates });
    await fetch(`${url}/decorated/1`, as('u1'));
    await close();
    expect(events).toEqual(['check', 'close']);
  });
});
