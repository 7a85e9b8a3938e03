import { Readable } from 'node:stream';
import { Controller, Get, Post, Res, StreamableFile } from '@nestjs/common';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { PerfService } from '../../../src/index.js';
import { startApp, type TestApp } from '../../fixtures/app.js';
import { CompressionController, textOf } from '../../fixtures/compression.controller.js';
import { call, callAccepting } from '../../fixtures/http-client.js';

@Controller('small')
class SmallController {
  @Get()
  small(): unknown {
    return { id: 42 };
  }

  @Post()
  posted(): unknown {
    return { id: 42 };
  }
}

@Controller('streams')
class StreamsController {
  private answer(): StreamableFile {
    return new StreamableFile(Readable.from([Buffer.from(textOf(50_000))]), { type: 'text/plain' });
  }

  @Get('plain')
  plain(): StreamableFile {
    return this.answer();
  }

  @Get('own')
  own(): StreamableFile {
    return this.answer();
  }

  @Get('off')
  off(): StreamableFile {
    return this.answer();
  }

  @Get('hooked')
  hooked(): StreamableFile {
    return this.answer();
  }

  @Get('one-hook')
  oneHook(): StreamableFile {
    return this.answer();
  }
}

@Controller('demand')
class DemandController {
  private answer(reply: FastifyReply): unknown {
    reply.type('text/plain');
    if (reply.compress === undefined) return reply.send(typeof reply.compress);
    return reply.compress(Readable.from([Buffer.from(textOf(50_000))]));
  }

  @Get('plain')
  plain(@Res() reply: FastifyReply): void {
    this.answer(reply);
  }

  @Get('options')
  options(@Res() reply: FastifyReply): void {
    this.answer(reply);
  }

  @Get('off')
  off(@Res() reply: FastifyReply): void {
    this.answer(reply);
  }
}

const passOn = (_request: unknown, _reply: unknown, done: () => void): void => done();

describe('@fastify/compress under the module', () => {
  let test: TestApp;
  const start = async (main: (fastify: FastifyInstance) => void): Promise<void> => {
    test = await startApp('fastify', {
      metadata: { controllers: [SmallController, StreamsController, DemandController, CompressionController] },
      beforeInit: (app) => main(app.getHttpAdapter().getInstance()),
    });
  };
  afterEach(async () => test.close());

  it('asks nothing of the client where a GET is answered with a small body', async () => {
    let reads = 0;
    await start((fastify) => {
      fastify.addHook('onRequest', (request, _reply, done) => {
        const { headers } = request.raw;
        const get = () => {
          reads += 1;
          return headers;
        };
        Object.defineProperty(request.raw, 'headers', { get, configurable: true });
        done();
      });
    });
    const response = await callAccepting(`${test.url}/small`, 'gzip');
    expect(response.text).toBe('{"id":42}');
    expect(reads).toBe(0);
    await callAccepting(`${test.url}/c/json/5000`, 'gzip');
    expect(reads).toBeGreaterThan(0);
    expect(test.app.get(PerfService).snapshot().compression).toMatchObject({ responses: 2, compressed: 1 });
  });

  it('carries streams of routes with options of their own, of none, and of those that have it off', async () => {
    const seen: string[] = [];
    const onSend = async (request: { url: string }) => void seen.push(request.url);
    const given: Record<string, object> = {
      '/streams/own': { compress: { threshold: 0 } },
      '/streams/off': { compress: false },
      '/streams/hooked': { onSend: [onSend] },
      '/streams/one-hook': { onSend },
    };
    await start((fastify) => {
      // Older than the plugin's, so it sees what a route was given.
      fastify.addHook('onRoute', (route) => void Object.assign(route, given[route.url]));
    });
    for (const name of ['plain', 'own', 'off', 'hooked', 'one-hook']) {
      const url = `${test.url}/streams/${name}`;
      const response = await callAccepting(url, 'gzip');
      expect(response.text, name).toBe(textOf(50_000));
      const { vary, 'content-encoding': coding } = response.headers;
      expect([vary, coding], name).toEqual(name === 'off' ? [undefined, undefined] : ['accept-encoding', 'gzip']);
      expect((await call(url)).text, name).toBe(textOf(50_000));
    }
    expect(seen).toEqual(['/streams/hooked', '/streams/hooked', '/streams/one-hook', '/streams/one-hook']);
  });

  it('leaves the hooks that several routes share as they are', async () => {
    const shared = { onRequest: [passOn], onSend: [async () => {}], preParsing: [async () => {}] };
    await start((fastify) => {
      fastify.addHook('onRoute', (route) => void Object.assign(route, shared));
    });
    for (const hooks of Object.values(shared)) expect(hooks).toHaveLength(1);
  });

  it('gives a reply its compress(), with the options of the route', async () => {
    const given: Record<string, object> = {
      '/demand/options': { compress: { encodings: ['deflate'] } },
      '/demand/off': { compress: false },
    };
    await start((fastify) => {
      fastify.addHook('onRoute', (route) => void Object.assign(route, given[route.url]));
    });
    for (const [path, coding] of [
      ['plain', 'gzip'],
      ['options', 'deflate'],
    ]) {
      const response = await callAccepting(`${test.url}/demand/${path}`, 'gzip, deflate');
      expect(response.headers['content-encoding'], path).toBe(coding);
      expect(response.text, path).toBe(textOf(50_000));
    }
    expect((await callAccepting(`${test.url}/demand/off`, 'gzip')).text).toBe('undefined');
  });

  it('does not mind an application that registers it later', async () => {
    await start((fastify) => {
      fastify.addHook('onRoute', (route) => {
        if (route.url !== '/small' || route.method !== 'GET') return;
        void fastify.register(import('@fastify/compress'), { global: false });
      });
    });
    expect((await callAccepting(`${test.url}/small`, 'gzip')).text).toBe('{"id":42}');
  });
});
