import { Controller, Get, Header, HttpCode, Redirect } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { byNest } from '../fixtures/app.js';
import { call, type ClientRequest } from '../fixtures/http-client.js';
import { bothForms } from './applications.js';

@Controller('vary')
class VaryController {
  @Get()
  small() {
    return { hello: 'world' };
  }
  @Get('text')
  text() {
    return 'Hello world!';
  }
  @Get('empty')
  empty() {}
  @Get('nothing')
  @HttpCode(204)
  nothing() {}
  @Get('redirect')
  @Redirect('/vary', 302)
  redirect() {}
  @Get('own')
  @Header('Vary', 'X-Own')
  own() {
    return { own: true };
  }
  @Get('fails')
  fails() {
    throw new Error('not told');
  }
}

describe.each(byNest('fastify'))('Vary on %s', (adapter) => {
  const { alike } = bothForms(adapter, () => ({ controllers: [VaryController] }));
  const withCors = bothForms(adapter, () => ({
    controllers: [VaryController],
    main: (app) => app.enableCors({ origin: ['http://one.example', 'http://two.example'] }),
  }));
  const varyOf = (path: string, request: ClientRequest) => async (running: { url: string }) =>
    (await call(running.url + path, request)).headers['vary'];

  it.each(['/vary', '/vary/text', '/vary/empty', '/vary/nothing', '/vary/fails', '/missing'])(
    'is not on %s, which no coding changes',
    async (path) => {
      expect(await alike(varyOf(path, {}))).toBeUndefined();
      expect(await alike(varyOf(path, { headers: { 'accept-encoding': 'gzip' } }))).toBeUndefined();
    },
  );

  it('is on a redirect what the framework says', async () => {
    expect(await alike(varyOf('/vary/redirect', {}))).toBe(adapter === 'express' ? 'Accept' : undefined);
  });

  it('is what the handler says', async () => {
    expect(await alike(varyOf('/vary/own', {}))).toBe('X-Own');
  });

  it('is what CORS says', async () => {
    const request = { headers: { origin: 'http://two.example' } };
    expect(await withCors.alike(varyOf('/vary', request))).toBe('Origin');
    expect(await withCors.alike(varyOf('/missing', request))).toBe('Origin');
  });
});
