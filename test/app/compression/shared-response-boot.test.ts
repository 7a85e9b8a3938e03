import { applyDecorators, Controller, Get, Logger, Post, Sse } from '@nestjs/common';
import { of, type Observable } from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { NoCompression, SharedResponse } from '../../../src/index.js';
import { adapters, startApp } from '../../fixtures/app.js';
import { rows } from '../../fixtures/compression.controller.js';
import { callAccepting } from '../../fixtures/http-client.js';

let handled = 0;
afterEach(() => vi.restoreAllMocks());

describe('@SharedResponse at boot', () => {
  class PostController {
    all(): void {}
  }
  class EventsController {
    all(): Observable<never> {
      return of();
    }
  }
  class NoRouteController {
    all(): void {}
  }
  const decorate = (target: Function, decorators: MethodDecorator[]): void => {
    const descriptor = Object.getOwnPropertyDescriptor(target.prototype, 'all')!;
    for (const decorator of decorators) decorator(target.prototype as object, 'all', descriptor);
    Object.defineProperty(target.prototype, 'all', descriptor);
    Controller('x')(target);
  };
  decorate(PostController, [SharedResponse({ ttlMs: 1 }), Post()]);
  decorate(NoRouteController, [SharedResponse({ ttlMs: 1 })]);
  decorate(EventsController, [SharedResponse({ ttlMs: 1 }), Sse()]);

  it.each([
    [PostController, 'PostController.all', 'POST'],
    [EventsController, 'EventsController.all', '@Sse()'],
    [NoRouteController, 'NoRouteController.all', 'no route'],
  ])('stops on anything but GET, also while it shares nothing: $name', async (controller, name, given) => {
    for (const perf of [{}, { compression: false }, { enabled: false }]) {
      await expect(startApp('fastify', { perf, metadata: { controllers: [controller] } })).rejects.toThrow(
        `PERF_ERR_DECORATOR: @SharedResponse() on "${name}" needs a GET handler, got ${given}. ` +
          'Only what is read can be shared: remove the decorator, or move it to the GET handler that serves the data.',
      );
    }
  });

  it('stops on a second one, also within a composed decorator', () => {
    class TwiceController {
      all(): void {}
    }
    const composed = applyDecorators(Get(), SharedResponse({ ttlMs: 60_000 })) as MethodDecorator;
    expect(() => decorate(TwiceController, [composed, SharedResponse({ ttlMs: 30_000 })])).toThrow(
      'PERF_ERR_DECORATOR: @SharedResponse() stands on "TwiceController.all" twice, and one must say how its answer is shared. ' +
        'Remove the other, which may be part of a composed decorator.',
    );
  });

  class OpenController {
    all(): unknown {
      handled += 1;
      return rows(5_000);
    }
  }
  decorate(OpenController, [SharedResponse({ ttlMs: 60_000 }), NoCompression(), Get()]);
  @Controller('inherits')
  class InheritingController extends OpenController {}

  it.each(adapters)(
    'on %s says that it shares nothing with `compression: false`, and how to share unencoded',
    async (adapter) => {
      const warn = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
      const metadata = { controllers: [OpenController, InheritingController] };
      const ask = async (compression: boolean): Promise<number> => {
        handled = 0;
        const test = await startApp(adapter, { perf: { compression }, metadata });
        for (let i = 0; i < 3; i++) {
          const response = await callAccepting(`${test.url}/x`, 'gzip');
          expect(response.headers['content-encoding']).toBeUndefined();
          expect(response.text).toBe(JSON.stringify(rows(5_000)));
        }
        await test.close();
        return handled;
      };
      expect(await ask(false)).toBe(3);
      expect(warn).toHaveBeenCalledWith(
        '@SharedResponse() on OpenController.all, InheritingController.all shares nothing: `compression: false` has switched off what it needs. ' +
          'Remove that option, or the decorator. To send a shared answer unencoded, put @NoCompression() beside it.',
      );
      warn.mockClear();
      expect(await ask(true)).toBe(1);
      expect(warn).not.toHaveBeenCalledWith(expect.stringContaining('shares nothing'));
    },
  );
});
