import type { ServerResponse } from 'node:http';
import { Controller, Get, HttpCode, type INestApplication, Logger, Res, Version, VersioningType } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { SharedResponse } from '../../../src/index.js';
import { adapters, startApp, type TestApp } from '../../fixtures/app.js';
import { callAccepting } from '../../fixtures/http-client.js';

const counts: Record<string, number> = {};
const count = (name: string): number => (counts[name] = (counts[name] ?? 0) + 1);

interface Reply {
  header(name: string, value: string): unknown;
  /** Of Express. */
  setHeader?(name: string, value: string): unknown;
}

@Controller('shared')
class SharedController {
  @Get('cookie')
  @SharedResponse({ ttlMs: 60_000 })
  cookie(): unknown {
    return { n: count('cookie') };
  }

  @Get('nothing')
  @SharedResponse({ ttlMs: 60_000 })
  nothing(@Res({ passthrough: true }) reply: Reply): void {
    reply.header('x-count', String(count('nothing')));
  }

  @Get('no-content')
  @HttpCode(204)
  @SharedResponse({ ttlMs: 60_000 })
  noContent(): void {}

  @Get('empty')
  @SharedResponse({ ttlMs: 60_000 })
  empty(): string {
    count('empty');
    return '';
  }

  @Get('accepts')
  @SharedResponse({ ttlMs: 60_000 })
  accepts(@Res({ passthrough: true }) reply: Reply): unknown {
    reply.header('vary', 'accept-language, accept');
    return { n: count('accepts') };
  }
}

@Controller('copied')
class CopyingController {
  @Get()
  @SharedResponse({ ttlMs: 60_000 })
  copied(@Res({ passthrough: true }) reply: Reply): unknown {
    const ofAnother = null as unknown as string;
    if (reply.setHeader === undefined) reply.header('vary', ofAnother);
    else reply.setHeader('vary', ofAnother);
    return { n: count('copied') };
  }
}

@Controller('versioned')
class VersionedController {
  @Get()
  @Version('1')
  @SharedResponse({ ttlMs: 60_000 })
  first(): string {
    return `1.${count('first')}`;
  }

  @Get()
  @Version('2')
  @SharedResponse({ ttlMs: 60_000 })
  second(): string {
    return `2.${count('second')}`;
  }
}

abstract class InheritedController {
  protected abstract readonly version: string;

  @Get()
  @SharedResponse({ ttlMs: 60_000 })
  list(): string {
    return this.version;
  }
}

@Controller({ path: 'inherited', version: '1' })
class FirstController extends InheritedController {
  protected readonly version = 'first';
}

@Controller({ path: 'inherited', version: '2' })
class SecondController extends InheritedController {
  protected readonly version = 'second';
}

describe.each(adapters)('@SharedResponse() on %s', (adapter) => {
  let test: TestApp;
  const start = async (
    controllers: (new () => object)[] = [SharedController],
    main: (app: INestApplication) => void = () => {},
  ): Promise<void> => {
    for (const name of Object.keys(counts)) delete counts[name];
    test = await startApp(adapter, {
      metadata: { controllers },
      beforeInit: (app) => {
        app.setGlobalPrefix('api');
        main(app);
      },
    });
  };
  const get = async (path: string): Promise<string> => (await callAccepting(`${test.url}/api/${path}`, 'gzip')).text;
  afterEach(async () => {
    vi.restoreAllMocks();
    await test.close();
  });

  it('of one version answers no other', async () => {
    await start(
      [VersionedController, FirstController, SecondController],
      (app) => void app.enableVersioning({ type: VersioningType.HEADER, header: 'x-version' }),
    );
    const of = async (path: string): Promise<string[]> => {
      const answers: string[] = [];
      for (const version of ['1', '2', '1', '2']) {
        const headers = { 'x-version': version };
        answers.push((await callAccepting(`${test.url}/api/${path}`, 'gzip', { headers })).text);
      }
      return answers;
    };
    expect(await of('versioned')).toEqual(['1.1', '2.1', '1.1', '2.1']);
    expect(await of('inherited')).toEqual(['first', 'second', 'first', 'second']);
  });

  it('is not stored where a cookie is set while its head is written', async () => {
    await start(undefined, (app) => {
      if (adapter === 'express') {
        app.use((_request: unknown, response: ServerResponse, next: () => void) => {
          // As express-session does it.
          const { writeHead } = response;
          response.writeHead = function (this: ServerResponse, ...head: never[]) {
            this.setHeader('set-cookie', 'sid=1');
            return writeHead.apply(this, head as never);
          };
          next();
        });
      } else {
        const hook = async (_request: unknown, reply: Reply) => void reply.header('set-cookie', 'sid=1');
        (app.getHttpAdapter().getInstance() as FastifyInstance).addHook('onSend', hook as never);
      }
    });
    expect([await get('shared/cookie'), await get('shared/cookie')]).toEqual(['{"n":1}', '{"n":2}']);
  });

  it('is not shared where `Vary` names a header whose name is part of one that was there before', async () => {
    await start(undefined, (app) => {
      if (adapter === 'express') {
        app.use((_request: unknown, response: ServerResponse, next: () => void) => {
          response.setHeader('vary', 'accept-language');
          next();
        });
      } else {
        const hook = async (_request: unknown, reply: Reply) => void reply.header('vary', 'accept-language');
        (app.getHttpAdapter().getInstance() as FastifyInstance).addHook('onRequest', hook as never);
      }
    });
    expect([await get('shared/accepts'), await get('shared/accepts')]).toEqual(['{"n":1}', '{"n":2}']);
  });

  it('is shared where a header was copied from an answer that lacks it', async () => {
    await start([CopyingController]);
    expect([await get('copied'), await get('copied')]).toEqual(['{"n":1}', '{"n":1}']);
  });

  it.each(['nothing', 'empty'])('is one for all where it has no body: %s', async (name) => {
    await start();
    const url = `${test.url}/api/shared/${name}`;
    const answers = [await callAccepting(url, 'gzip')];
    answers.push(...(await Promise.all([callAccepting(url, 'gzip'), callAccepting(url, 'br')])));
    expect(counts[name]).toBe(1);
    const told = answers.map(({ status, text, headers }) => ({
      status,
      text,
      headers: { ...headers, date: null, etag: null },
    }));
    expect(told).toEqual([told[0], told[0], told[0]]);
    expect(told[0]).toMatchObject({ status: 200, text: '' });
  });

  it.each(['nothing', 'no-content'])('says nothing of HEAD where GET has no body: %s', async (name) => {
    const warn = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    await start();
    const answers: unknown[] = [];
    for (const method of ['GET', 'HEAD']) {
      const { status, headers } = await callAccepting(`${test.url}/api/shared/${name}`, 'gzip', { method });
      answers.push([status, headers.vary]);
    }
    // Its flight ends with its response: the application's end waits for that.
    await test.close();
    expect(answers).toEqual([answers[0], answers[0]]);
    expect(warn.mock.calls.filter(([text]) => String(text).includes('@SharedResponse()'))).toEqual([]);
  });
});
