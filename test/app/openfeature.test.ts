import { createRequire } from 'node:module';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Inject,
  Injectable,
  Query,
  UseGuards,
} from '@nestjs/common';
import { of } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import { Experiment, Experiments, type GateClient, type Unit, Variant } from '../../src/index.js';
import { type OpenFeatureClient, openFeatureGates } from '../../src/entries/openfeature.js';
import { type Adapter, either, startApp } from '../fixtures/app.js';

/* The SDK itself, which is installed among the clients of test/clients. */
const { InMemoryProvider, OpenFeature } = createRequire(new URL('../clients/package.json', import.meta.url))(
  '@openfeature/server-sdk',
) as {
  InMemoryProvider: new (flags: object) => { putConfiguration(flags: object): Promise<void> };
  OpenFeature: {
    setProviderAndWait(domain: string, provider: object): Promise<void>;
    getClient(domain: string): OpenFeatureClient;
    close(): Promise<void>;
  };
};

const flag = (contextEvaluator: (context: { targetingKey: string; plan?: string }) => 'yes' | 'no') => ({
  disabled: false,
  variants: { yes: true, no: false },
  defaultVariant: 'no',
  contextEvaluator,
});
const flags = {
  lean_json: flag(({ targetingKey }) => (targetingKey.startsWith('even') ? 'yes' : 'no')),
  paying: flag(({ plan }) => (plan === 'paid' ? 'yes' : 'no')),
  text: { disabled: false, variants: { a: 'a' }, defaultVariant: 'a' },
};

let domains = 0;
async function clientOf(provider: object): Promise<OpenFeatureClient> {
  const domain = `domain-${(domains += 1)}`;
  await OpenFeature.setProviderAndWait(domain, provider);
  return OpenFeature.getClient(domain);
}
afterEach(() => OpenFeature.close());

@Injectable()
class UserGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<{ headers: Record<string, string>; user?: { id: string } }>();
    request.user = { id: request.headers['x-user']! };
    return true;
  }
}

@Controller()
@UseGuards(UserGuard)
class ShopController {
  constructor(@Inject(Experiments) private readonly experiments: Experiments) {}

  @Get('list')
  @Experiment('lean_json')
  list(@Variant('lean_json') variant: string, @Query('q') q: string) {
    return { variant, q, check: this.experiments.check('lean_json') };
  }

  @Get('decorated')
  @Experiment('lean_json')
  decorated() {
    return of({ check: this.experiments.check('lean_json') });
  }

  @Get('bare')
  bare(@Query('gate') gate: string) {
    return { check: this.experiments.check(gate) };
  }
}

async function start(adapter: Adapter, gates: GateClient) {
  const warnings: string[] = [];
  const logger = { log: () => {}, error: () => {}, warn: (message: string) => void warnings.push(message) };
  const running = await startApp(adapter, {
    metadata: { controllers: [ShopController] },
    perf: { experiments: { gates } },
    nest: { logger },
  });
  const get = async (path: string, user: string): Promise<unknown> =>
    (await fetch(`${running.url}${path}`, { headers: { 'x-user': user } })).json();
  return { ...running, get, warnings };
}

describe.each(either('fastify'))('openFeatureGates on %s', (adapter) => {
  it('decides before the handler, though the SDK answers with a promise', async () => {
    const gates = openFeatureGates(await clientOf(new InMemoryProvider(flags)));
    const { get, requests, warnings, close } = await start(adapter, gates);
    expect(await get('/list?q=tea', 'even-1')).toEqual({ variant: 'on', q: 'tea', check: true });
    expect(await get('/list?q=tea', 'odd-1')).toEqual({ variant: 'off', q: 'tea', check: false });
    expect(await get('/decorated', 'even-2')).toEqual({ check: true });
    const records = await requests();
    await close();
    expect(records.map(({ variants, unit }) => [variants, unit?.userId])).toEqual([
      [{ lean_json: 'on' }, 'even-1'],
      [{ lean_json: 'off' }, 'odd-1'],
      [{ lean_json: 'on' }, 'even-2'],
    ]);
    expect(warnings.filter((line) => line.includes('gate'))).toEqual([]);
  });

  it('answers a bare check() by the last evaluation of the unit, and is off with a reason before it', async () => {
    const gates = openFeatureGates(await clientOf(new InMemoryProvider(flags)));
    const { app, get, requests, warnings, close } = await start(adapter, gates);
    expect(await get('/bare?gate=lean_json', 'even-1')).toEqual({ check: false });
    expect(await get('/bare?gate=lean_json', 'even-1')).toEqual({ check: true });
    await requests();
    // The first answer was no decision.
    const [gate] = app.get(Experiments).totals().gates;
    await close();
    expect(gate!.routes.map(({ on, off }) => [on.buckets.length, off.buckets.length])).toEqual([[1, 0]]);
    expect(warnings).toContain(
      'gate `lean_json`: OpenFeature answers with a promise: put `@Experiment()` or `@Variant()` of this gate on the handler. Such requests run as "off" and are not compared.',
    );
  });

  it('runs the handler as off when the provider throws or never answers', { timeout: 30_000 }, async () => {
    const failing = { getBooleanDetails: () => Promise.reject(new Error('no network')) };
    const first = await start(adapter, openFeatureGates(failing));
    expect(await first.get('/list', 'even-1')).toMatchObject({ variant: 'off', check: false });
    await first.close();
    expect(first.warnings.join()).toContain('gate `lean_json`: no network.');

    const silent = { getBooleanDetails: () => new Promise<never>(() => {}) };
    const second = await start(adapter, openFeatureGates(silent));
    expect(await second.get('/list', 'even-1')).toMatchObject({ variant: 'off', check: false });
    await second.close();
    expect(second.warnings.join()).toContain('the client did not answer within 1000 ms');
  });
});

describe('openFeatureGates', () => {
  const unit: Unit = { userId: 'u1', customIds: { plan: 'paid' } };
  const evaluated = async (gates: GateClient, gate: string): Promise<unknown> => {
    await gates.prepare!(gate, unit);
    return gates.check(gate, unit);
  };

  it('hands custom ids to the provider as attributes, and names the variant as the rule', async () => {
    const gates = openFeatureGates(await clientOf(new InMemoryProvider(flags)));
    expect(await evaluated(gates, 'paying')).toEqual({ on: true, rule: 'yes' });
    expect(await evaluated(gates, 'lean_json')).toEqual({ on: false, rule: 'no' });
  });

  it('is off with the reason for a flag that is unknown, or no boolean', async () => {
    const gates = openFeatureGates(await clientOf(new InMemoryProvider(flags)));
    expect(await evaluated(gates, 'unheard of')).toMatchObject({
      on: false,
      problem: expect.stringMatching(/FLAG_NOT_FOUND/) as string,
    });
    expect(await evaluated(gates, 'text')).toMatchObject({
      on: false,
      problem: expect.stringMatching(/TYPE_MISMATCH/) as string,
    });
  });

  it('takes a test double that answers at once, or has no details', async () => {
    const double = openFeatureGates({ getBooleanDetails: (_flag, _default, { plan }) => ({ value: plan === 'paid' }) });
    expect(double.check('paying', unit)).toEqual({ on: true });
    expect(await evaluated(openFeatureGates({ getBooleanValue: async () => true }), 'paying')).toEqual({ on: true });
  });

  it('forgets what it knew when the configuration changes, and when it closes', async () => {
    const provider = new InMemoryProvider(flags);
    const gates = openFeatureGates(await clientOf(provider));
    expect(await evaluated(gates, 'paying')).toEqual({ on: true, rule: 'yes' });
    await provider.putConfiguration({ ...flags, paying: flag(() => 'no') });
    await expect.poll(() => gates.check('paying', unit)).toEqual({ on: false, rule: 'no' });
    await gates.close!();
    expect(gates.check('paying', unit)).toMatchObject({
      on: false,
      problem: expect.stringMatching(/promise/) as string,
    });
  });

  it('refuses what is no client', () => {
    expect(() => openFeatureGates({})).toThrow(
      'PERF_ERR_OPTION: `openFeatureGates(client)` must be an OpenFeature client: `OpenFeature.getClient()`, got an object',
    );
  });
});
