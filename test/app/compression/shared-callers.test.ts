import type { IncomingHttpHeaders } from 'node:http';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Headers,
  Logger,
  Res,
  UseGuards,
} from '@nestjs/common';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type PerfModuleOptions, SharedResponse } from '../../../src/index.js';
import { adapters, startApp, type TestApp } from '../../fixtures/app.js';
import { callAccepting } from '../../fixtures/http-client.js';

interface Reply {
  header(name: string, value: string): unknown;
}
interface UserRequest {
  headers: IncomingHttpHeaders;
  user?: { id: string };
}

let runs = 0;
/** What a handler that is not made for sharing returns: whose answer it is. */
const whose = (headers: IncomingHttpHeaders): unknown => {
  runs += 1;
  return { run: runs, of: headers.cookie ?? headers.authorization ?? headers['x-key'] ?? 'nobody', host: headers.host };
};

class KeyGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<UserRequest>();
    const key = request.headers['x-key'];
    if (typeof key === 'string') request.user = { id: key };
    return true;
  }
}

@Controller('callers')
class CallersController {
  // Above the guard: it is read behind it all the same.
  @SharedResponse({ ttlMs: 60_000 })
  @UseGuards(KeyGuard)
  @Get('own')
  own(@Headers() headers: IncomingHttpHeaders): unknown {
    return whose(headers);
  }

  @SharedResponse({ ttlMs: 60_000 })
  @Get('public')
  public(@Headers() headers: IncomingHttpHeaders, @Res({ passthrough: true }) reply: Reply): unknown {
    reply.header('cache-control', 'public');
    return whose(headers);
  }

  @SharedResponse({ ttlMs: 60_000 })
  @Get('s-maxage')
  sMaxage(@Headers() headers: IncomingHttpHeaders, @Res({ passthrough: true }) reply: Reply): unknown {
    reply.header('cache-control', 's-maxage=60');
    return whose(headers);
  }

  @SharedResponse({ ttlMs: 60_000, varyBy: () => 'all' })
  @Get('vary-by')
  varyBy(@Headers() headers: IncomingHttpHeaders): unknown {
    return whose(headers);
  }

  @SharedResponse({ ttlMs: 60_000, forEveryone: true })
  @Get('for-everyone')
  forEveryone(@Headers() headers: IncomingHttpHeaders): unknown {
    return whose(headers);
  }
}

describe.each(adapters)('@SharedResponse() on %s and its callers', (adapter) => {
  let test: TestApp;
  const start = async (perf: PerfModuleOptions = {}): Promise<void> => {
    runs = 0;
    test = await startApp(adapter, { perf, metadata: { controllers: [CallersController] } });
  };
  afterEach(async () => {
    vi.restoreAllMocks();
    await test.close();
  });
  interface Answer {
    run: number;
    of: string;
    host: string;
  }
  const get = async (path: string, headers: Record<string, string> = {}): Promise<Answer> =>
    JSON.parse((await callAccepting(`${test.url}/callers/${path}`, 'gzip', { headers })).text) as Answer;

  it('shares one answer among those that are not known', async () => {
    await start();
    const answers = await Promise.all([get('own'), get('own'), get('own')]);
    expect(answers.map(({ run }) => run)).toEqual([1, 1, 1]);
  });

  it.each(['cookie', 'authorization', 'x-key'])(
    'gives nobody the answer of a user that `%s` makes known',
    async (name) => {
      await start();
      const users = ['session=anna', 'session=bert'].map((value) => ({ [name]: value }));
      const asked = [users[0]!, {}, users[1]!, {}, users[0]!];
      const answers: Answer[] = [];
      for (const headers of asked) answers.push(await get('own', headers));
      const of = ['session=anna', 'nobody', 'session=bert', 'nobody', 'session=anna'];
      expect(answers.map((answer) => answer.of)).toEqual(of);
      expect(answers.map(({ run }) => run)).toEqual([1, 2, 3, 2, 4]);
      const atOnce = await Promise.all([...users, ...users].map((headers) => get('own', headers)));
      expect(atOnce.map((answer) => answer.of)).toEqual([
        'session=anna',
        'session=bert',
        'session=anna',
        'session=bert',
      ]);
    },
  );

  it('asks `unit` who a caller is, and takes one that it cannot name for somebody', async () => {
    await start({
      unit: ({ headers }) => {
        if (headers['x-person'] === 'unreadable') throw new TypeError('no person');
        return typeof headers['x-person'] === 'string' ? { userId: headers['x-person'] } : null;
      },
    });
    const asked = [
      { 'x-person': 'anna' },
      {},
      { 'x-person': 'bert' },
      { 'x-person': 'unreadable' },
      { 'x-key': 'anna' },
    ];
    const answers: number[] = [];
    for (const headers of asked) answers.push((await get('own', headers)).run);
    expect(answers).toEqual([1, 2, 3, 4, 2]);
  });

  it("takes a `unit` that gives the request's own id for nobody", async () => {
    await start({ unit: ({ headers }) => ({ userId: String(headers['x-request-id']) }) });
    const answers = [await get('own', { 'x-request-id': 'one' }), await get('own', { 'x-request-id': 'two' })];
    expect(answers.map(({ run }) => run)).toEqual([1, 1]);
  });

  it.each(['public', 's-maxage', 'vary-by', 'for-everyone'])(
    'shares %s among known callers and others',
    async (path) => {
      await start();
      const answers = [
        await get(path, { cookie: 'session=anna' }),
        await get(path, { cookie: 'session=bert' }),
        await get(path, { authorization: 'Bearer bert' }),
        await get(path),
      ];
      expect(answers.map(({ run }) => run)).toEqual([1, 1, 1, 1]);
    },
  );

  it('gives each host an answer of its own', async () => {
    await start();
    for (const path of ['own', 'public', 'for-everyone']) {
      const hosts = ['a.test', 'b.test', 'a.test', 'A.TEST'];
      const answers: Answer[] = [];
      for (const host of hosts) answers.push(await get(path, { host }));
      expect(answers.map(({ host }) => host)).toEqual(['a.test', 'b.test', 'a.test', 'a.test']);
    }
    expect(runs).toBe(6);
  });

  it('says once that a known caller got an answer of its own, and how to share it', async () => {
    const warn = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    await start();
    const lines = (): string[] =>
      warn.mock.calls.map(([text]) => String(text)).filter((text) => text.includes('@SharedResponse()'));
    await get('own');
    await get('public', { cookie: 'session=anna' });
    await get('for-everyone', { cookie: 'session=anna' });
    expect(lines()).toEqual([]);
    for (const cookie of ['session=anna', 'session=bert', 'session=anna']) await get('own', { cookie });
    await get('own', { authorization: 'Bearer anna' });
    await test.close();
    expect(lines()).toEqual([
      '@SharedResponse() on "CallersController.own": a caller that is known by `Cookie` got an answer of its own, as all do that ' +
        '`Cookie`, `Authorization` or `unit` makes known. To share it, send `Cache-Control: public` or write `forEveryone: true` ' +
        'where it is the same for all of them; else give a `varyBy` that returns what it depends on.',
    ]);
  });
});
