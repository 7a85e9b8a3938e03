import { Controller, Get, UseGuards, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { PerfService, type PerfModuleOptions, type PerfRequest } from '../../src/index.js';
import { prometheusSink } from '../../src/entries/prometheus.js';
import { type Adapter, either, startApp } from '../fixtures/app.js';

/** The user that a header names. */
class LoginGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<PerfRequest>();
    const name = request.headers['x-user'];
    if (name !== undefined) request['user'] = { id: name };
    return true;
  }
}

@Controller()
@UseGuards(LoginGuard)
class FeedController {
  @Get('feed')
  feed() {
    return [];
  }
}

async function usersOf(adapter: Adapter, perf: PerfModuleOptions) {
  const running = await startApp(adapter, { perf, metadata: { controllers: [FeedController] } });
  for (const user of ['alice', 'alice', 'bob']) {
    await (await fetch(`${running.url}/feed`, { headers: { 'x-user': user } })).text();
  }
  await (await fetch(`${running.url}/feed`)).text();
  const records = await running.requests();
  const service = running.app.get(PerfService);
  const metrics = await (await fetch(`${running.url}/metrics`)).text();
  const seen = { users: service.users({ by: 'count' }), snapshot: service.snapshot(), metrics, records };
  await running.close();
  return seen;
}

describe.each(either('express'))('users, on %s', (adapter) => {
  it('are listed with what they asked for; whoever is not known is not, and metrics name none', async () => {
    const { users, snapshot, metrics } = await usersOf(adapter, { sinks: [prometheusSink()] });
    expect(users).toMatchObject([
      { unit: 'alice', route: 'GET /feed', count: 2, countAtLeast: 2 },
      { unit: 'bob', route: 'GET /feed', count: 1, countAtLeast: 1 },
    ]);
    expect(users[0]!.totalMs).toBeGreaterThan(0);
    expect(snapshot.users.map(({ unit }) => unit).toSorted()).toEqual(['alice', 'bob']);
    expect(metrics).toContain('http_server_request_duration_seconds');
    expect(metrics).not.toContain('alice');
  });

  it('are not told of what is not measured', async () => {
    const { users } = await usersOf(adapter, { latency: { ignore: ['/feed'] } });
    expect(users).toEqual([]);
  });

  it('are hashes with `redact`; a salt makes them the same in every pod', async () => {
    const redacted = await Promise.all([
      usersOf(adapter, { users: { redact: 'salt' } }),
      usersOf(adapter, { users: { redact: 'salt' } }),
      usersOf(adapter, { users: { redact: true } }),
    ]);
    const [first, second, own] = redacted.map(({ users }) => users[0]!.unit);
    expect(first).toMatch(/^[\da-f]{16}$/);
    expect(second).toBe(first);
    expect(own).toMatch(/^[\da-f]{16}$/);
    expect(own).not.toBe(first);
    expect(JSON.stringify(redacted)).not.toContain('alice');
  });

  it('are nobody’s business with `users: false`', async () => {
    const { users, snapshot } = await usersOf(adapter, { users: false });
    expect([users, snapshot.users]).toEqual([[], []]);
  });
});

it('users are not listed by what they cannot be listed by', async () => {
  const running = await startApp('fastify');
  const perf = running.app.get(PerfService);
  for (const [options, message] of [
    [{ by: 'mean' }, '`perf.users() options.by` must be one of `"totalMs"`, `"count"`, got `"mean"` (string).'],
    [{ route: 5 }, "`perf.users() options.route` must be the name of a route: 'GET /users/:id', got `5` (number)."],
    [{ rout: 'GET /feed' }, '`perf.users() options.rout` is not an option. Known options: '],
    [null, '`perf.users() options` must be an object, got `null`.'],
  ] as const)
    expect(() => perf.users(options as never)).toThrow(`PERF_ERR_OPTION: ${message}`);
  await running.close();
});
