import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Controller,
  Get,
  Inject,
  Injectable,
  ServiceUnavailableException,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { cache } from '../../src/entries/cache.js';
import { record } from '../../src/entries/record.js';
import { settle } from '../../src/entries/testing.js';
import {
  defer,
  Experiment,
  Experiments,
  PerfService,
  SharedResponse,
  SkipPerf,
  staticGates,
  type PerfModuleOptions,
  type PerfRequest,
  type RequestRecord,
  type Unit,
} from '../../src/index.js';
import { adapterOf, either } from '../fixtures/app.js';
import { closeApps, listeningApp, recordsOf } from '../fixtures/build-app.js';
import { Lines } from '../fixtures/lines.js';

/** Leaves the user on the request, as Passport does. */
@Injectable()
class UserGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<{ headers: Record<string, string>; user?: { id: unknown } }>();
    const id = request.headers['x-user'];
    if (id !== undefined) request.user = { id: /^\d+$/.test(id) ? Number(id) : id };
    return true;
  }
}
@Controller()
class WorkController {
  constructor(@Inject(Experiments) private readonly experiments: Experiments) {}

  @Get('plain')
  plain() {
    return 'done';
  }
  @Get('gated')
  @Experiment('gate')
  gated() {
    return 'done';
  }
  @Get('twice')
  @Experiment('gate')
  twice() {
    return [this.experiments.check('gate'), this.experiments.check('other')];
  }
  @Get('skipped')
  @SkipPerf()
  skipped() {
    return 'done';
  }
  @Get('deferring')
  deferring() {
    defer(() => (deferredGate = this.experiments.check('gate')));
    return 'done';
  }
  @Get('broken')
  broken(): never {
    throw new ServiceUnavailableException();
  }
  @Get('shared')
  @SharedResponse({ ttlMs: 60_000 })
  shared() {
    return 'done';
  }
}
let deferredGate = false;

const VARIABLES = ['GIT_COMMIT', 'SOURCE_VERSION'];
const before = VARIABLES.map((name) => process.env[name]);
afterEach(async () => {
  VARIABLES.forEach((name, i) => {
    if (before[i] === undefined) delete process.env[name];
    else process.env[name] = before[i];
  });
  await closeApps();
});

describe.each(either('express'))('a request’s record on %s', (adapter) => {
  const lines = new Lines();
  async function records(perf: PerfModuleOptions, ...requests: [path: string, user?: string][]) {
    const built = await listeningApp(adapterOf(adapter), {
      perf,
      metadata: { controllers: [WorkController] },
      nest: { logger: lines },
      beforeInit: (app) => void app.useGlobalGuards(new UserGuard()),
    });
    for (const [path, user] of requests) {
      await fetch(`${built.url}${path}`, {
        headers: { 'x-request-id': `id-${path.slice(1)}`, ...(user && { 'x-user': user }) },
      });
    }
    return recordsOf(built, requests.length);
  }
  const unitsOf = (all: RequestRecord[]) => all.map(({ unit }) => unit?.userId ?? null);

  it('names the user of the request by default, and nobody where there is none', async () => {
    expect(unitsOf(await records({}, ['/plain', 'ann'], ['/plain', '7'], ['/plain'], ['/nowhere']))).toEqual([
      'ann',
      '7',
      null,
      null,
    ]);
  });

  it('names nobody where `unit` answers with a promise, says so, and survives its rejection', async () => {
    const unit = async (): Promise<never> => Promise.reject(new Error('no session'));
    expect(unitsOf(await records({ unit: unit as never }, ['/plain', 'ann']))).toEqual([null]);
    expect(lines.all.join('\n')).toContain('unit() returned a promise: it must answer at once');
  });

  it('takes ids that are numbers as text, and leaves out what is none', async () => {
    const unit = () => ({ userId: 42, customIds: { company: 7n, team: 'red', country: undefined } });
    const [plain, gated] = await records(
      { unit: unit as never, experiments: { gates: staticGates({ gate: true }) } },
      ['/plain'],
      ['/gated'],
    );
    expect(plain!.unit).toEqual({ userId: '42', customIds: { company: '7', team: 'red' } });
    expect(gated!.unit).toEqual(plain!.unit);
    expect(Object.keys(plain!.unit!.customIds!)).toEqual(['company', 'team']);
  });

  it('gives a unit that has text on as it is, with what its class knows', async () => {
    const seen: unknown[] = [];
    class Account {
      readonly userId = 'ann';
      get country() {
        return 'AT';
      }
    }
    const check = (_gate: string, unit: Unit) => ({ on: seen.push((unit as Account).country) > 0 });
    await records({ unit: () => new Account(), experiments: { gates: { check } } }, ['/gated']);
    expect(seen).toEqual(['AT']);
  });

  it('names nobody where `unit` tells no id, and says so', async () => {
    expect(unitsOf(await records({ unit: () => ({ userId: Number('me') }) as never }, ['/plain']))).toEqual([null]);
    expect(lines.all.join('\n')).toContain('unit() returned no `{ userId }` with a text or a number in it');
  });

  it('is redacted with `users.redact`, whether a gate was asked for the user or not', async () => {
    const perf = { users: { redact: 'salt' }, experiments: { gates: staticGates({ gate: true }) } } as const;
    const [plain, gated] = unitsOf(await records(perf, ['/plain', 'ann'], ['/gated', 'ann']));
    expect(plain).toMatch(/^[\da-f]{16}$/);
    expect(gated).toBe(plain);
  });

  it('names the user whom middleware has found, on either platform', async () => {
    const built = await listeningApp(adapterOf(adapter), {
      metadata: { controllers: [WorkController] },
      beforeInit: (app) => {
        app.use((request: { user?: object }, _response: unknown, next: () => void) => {
          request.user = { id: 'bob' };
          next();
        });
      },
    });
    await fetch(`${built.url}/plain`);
    expect(unitsOf(await recordsOf(built, 1))).toEqual(['bob']);
  });

  it('names whom `unit` tells, and experiments go by it', async () => {
    const perf: PerfModuleOptions = {
      unit: (request) => (request.user ? { userId: `tenant of ${request.user.id}` } : null),
      experiments: { gates: staticGates({ gate: true }) },
    };
    const all = await records(perf, ['/plain', 'ann'], ['/plain'], ['/gated', 'ann'], ['/gated']);
    expect(unitsOf(all)).toEqual(['tenant of ann', null, 'tenant of ann', 'id-gated']);
  });

  it.each([
    ['knows a user', 'ann'],
    ['knows nobody', undefined],
  ])('asks `unit` once for each request, with everything on, where it %s', async (_what, user) => {
    const directory = mkdtempSync(join(tmpdir(), 'perf-units-'));
    const asked: string[] = [];
    const unit = (request: PerfRequest): Unit | null => {
      asked.push(`${request.method} ${request.url}`);
      return request.user === undefined ? null : { userId: request.user.id };
    };
    const perf: PerfModuleOptions = {
      unit,
      latency: { serverTiming: true, slowMs: 0.001 },
      experiments: { gates: staticGates({ gate: true }) },
      dashboard: true,
      snapshotEndpoint: { authorize: () => true },
      extensions: [record({ directory }), cache()],
    };
    const built = await listeningApp(adapterOf(adapter), {
      perf,
      metadata: { controllers: [WorkController] },
      nest: { logger: lines },
      beforeInit: (app) => void app.useGlobalGuards(new UserGuard()),
    });
    const { recording } = built.app.get(PerfService);
    recording.start({ forMs: 60_000 });
    const paths = ['/plain', '/gated', '/twice', '/skipped', '/deferring', '/broken', '/nowhere'];
    // Behind guards, `unit` may not know yet whom an interceptor finds: there it is asked again.
    if (user !== undefined) paths.push('/shared');
    for (const path of paths) await fetch(`${built.url}${path}`, { headers: { ...(user && { 'x-user': user }) } });
    await recordsOf(built, paths.length - 1);
    await settle(built.app);
    await recording.stop();
    built.app.get(PerfService).snapshot();
    const measured = paths.filter((path) => path !== '/skipped');
    expect(asked.toSorted()).toEqual(measured.map((path) => `GET ${path}`).toSorted());
    expect(deferredGate).toBe(true);
    rmSync(directory, { recursive: true });
  });

  it('does not ask `unit` for a route that is not measured', async () => {
    const asked: unknown[] = [];
    const unit = (request: PerfRequest): null => (asked.push(request.url), null);
    const built = await listeningApp(adapterOf(adapter), {
      perf: { unit },
      metadata: { controllers: [WorkController] },
    });
    for (const path of ['/skipped', '/plain']) await fetch(`${built.url}${path}`);
    await recordsOf(built, 1);
    expect(asked).toEqual(['/plain']);
  });

  it('names whom `experiments.unit` tells once a gate was checked in it', async () => {
    const perf: PerfModuleOptions = {
      unit: () => ({ userId: 'by unit' }),
      experiments: { gates: staticGates({ gate: true }), unit: () => ({ userId: 'by experiments.unit' }) },
    };
    expect(unitsOf(await records(perf, ['/plain'], ['/gated']))).toEqual(['by unit', 'by experiments.unit']);
  });

  it('names nobody when `unit` fails, which is said once', async () => {
    const unit = () => {
      throw new Error('no such tenant');
    };
    expect(unitsOf(await records({ unit }, ['/plain'], ['/plain']))).toEqual([null, null]);
    expect(lines.all.filter((line) => line.startsWith('unit() threw: no such tenant.'))).toHaveLength(1);
  });

  it('tells the release: the option, else the platform’s variable, else the version of the application', async () => {
    for (const name of VARIABLES) delete process.env[name];
    const releases = async (perf: PerfModuleOptions) => (await records(perf, ['/plain'])).map(({ release }) => release);
    const { version } = (await import('../../package.json', { with: { type: 'json' } })).default;
    expect(await releases({})).toEqual([version]);
    process.env['SOURCE_VERSION'] = ' 4f2c \n';
    expect(await releases({})).toEqual(['4f2c']);
    process.env['GIT_COMMIT'] = '9b1d';
    expect(await releases({})).toEqual(['9b1d']);
    expect(await releases({ release: 'spring' })).toEqual(['spring']);
  });
});
