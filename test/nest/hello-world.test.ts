import {
  All,
  Body,
  Controller,
  Delete,
  Get,
  Head,
  Header,
  HttpCode,
  type HttpRedirectResponse,
  Ip,
  Options,
  Param,
  Patch,
  Post,
  Put,
  Query,
  Redirect,
  Req,
  Res,
} from '@nestjs/common';
import { of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { byNest } from '../fixtures/app.js';
import { bothForms, withJson } from './applications.js';

/** What Express's response and Fastify's reply share. */
interface Reply {
  status(code: number): Reply;
  header(name: string, value: string): Reply;
  send(body: unknown): unknown;
}

@Controller('hello')
class HelloController {
  @Get()
  @Header('X-Greeting', 'one')
  @Header('X-Other', 'two')
  greet() {
    return 'Hello world!';
  }
  @Get('async')
  async later() {
    await new Promise((resolve) => setImmediate(resolve));
    return 'Hello world!';
  }
  @Get('promise')
  promise() {
    return Promise.resolve({ hello: 'world' });
  }
  @Get('stream')
  stream() {
    return of('Hello world!');
  }
  @Get('params/:id/of/:owner')
  params(
    @Param() all: Record<string, string>,
    @Param('id') id: string,
    @Query() query: object,
    @Query('q') q?: string,
  ) {
    return { all: { ...all }, id, query: { ...query }, q };
  }
  @Get('empty')
  empty() {}
  @Get('null')
  nothing() {
    return null;
  }
  @Get('falsy')
  falsy() {
    return 0;
  }
  @Post()
  create(@Body() body: unknown, @Body('name') name: string) {
    return { body, name };
  }
  @Post('accepted')
  @HttpCode(202)
  accept() {
    return 'accepted';
  }
  @Delete(':id')
  @HttpCode(204)
  remove() {}
  @Put(':id')
  put(@Param('id') id: string, @Body() body: object) {
    return { id, ...body };
  }
  @Patch(':id')
  patch(@Param('id') id: string) {
    return { patched: id };
  }
  @Get('moved')
  @Redirect('/hello', 301)
  moved() {}
  @Get('elsewhere')
  @Redirect('/hello')
  elsewhere(): HttpRedirectResponse {
    return { url: '/hello/async', statusCode: 307 };
  }
  @Get('reply')
  reply(@Res() reply: Reply) {
    reply.status(203).header('x-by', 'hand').send({ by: 'hand' });
  }
  @Get('passthrough')
  passthrough(@Res({ passthrough: true }) reply: Reply) {
    reply.status(202).header('x-set', 'by the handler');
    return { through: true };
  }
  @Get('request')
  request(@Req() request: { url: string; method: string }, @Ip() ip: string) {
    return { url: request.url, method: request.method, ip };
  }
  @Head('head')
  head() {}
  @Options('options')
  @Header('Allow', 'GET')
  options() {
    return 'options';
  }
  @All('all')
  all(@Req() request: { method: string }) {
    return request.method;
  }
}

describe.each(byNest('express'))('hello world on %s', (adapter) => {
  const { ask, json } = bothForms(adapter, () => ({ controllers: [HelloController] }));

  it.each(['/hello', '/hello/async', '/hello/stream'])('answers a string from %s', async (path) => {
    const { status, headers, text } = await ask(path);
    expect(status).toBe(200);
    expect(text).toBe('Hello world!');
    expect(headers['content-length']).toBe('12');
    expect(headers['content-encoding']).toBeUndefined();
  });

  it('sets the headers of the decorators', async () => {
    const { headers } = await ask('/hello');
    expect(headers).toMatchObject({ 'x-greeting': 'one', 'x-other': 'two' });
  });

  it('answers objects as JSON', async () => {
    const { headers, text } = await ask('/hello/promise');
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
    expect(text).toBe('{"hello":"world"}');
  });

  it('gives parameters and query to the handler', async () => {
    expect(await json('/hello/params/7/of/ann%20b?q=1&r=2&r=3')).toEqual({
      all: { id: '7', owner: 'ann b' },
      id: '7',
      query: { q: '1', r: ['2', '3'] },
      q: '1',
    });
  });

  it('gives the request and the address to the handler', async () => {
    expect(await json('/hello/request?x=1')).toEqual({ url: '/hello/request?x=1', method: 'GET', ip: '127.0.0.1' });
  });

  it.each([
    ['/hello/empty', ''],
    ['/hello/null', adapter === 'express' ? '' : 'null'],
    ['/hello/falsy', '0'],
  ])('answers %s with "%s"', async (path, text) => {
    expect(await ask(path)).toMatchObject({ status: 200, text });
  });

  it('answers 201 to a POST and gives the body to the handler', async () => {
    const { status, text } = await ask('/hello', withJson('POST', { name: 'ann', age: 3 }));
    expect({ status, body: JSON.parse(text) }).toEqual({
      status: 201,
      body: { body: { name: 'ann', age: 3 }, name: 'ann' },
    });
  });

  it.each([
    ['POST', '/hello/accepted', 202, 'accepted'],
    ['DELETE', '/hello/7', 204, ''],
    ['PATCH', '/hello/7', 200, '{"patched":"7"}'],
    ['OPTIONS', '/hello/options', 200, 'options'],
    ['GET', '/hello/all', 200, 'GET'],
    ['OPTIONS', '/hello/all', 200, 'OPTIONS'],
  ])('answers %s %s with %i', async (method, path, status, text) => {
    expect(await ask(path, { method })).toMatchObject({ status, text });
  });

  it('answers a PUT with what the body says', async () => {
    expect(await json('/hello/7', withJson('PUT', { name: 'ann' }))).toEqual({ id: '7', name: 'ann' });
  });

  it.each([
    ['/hello/moved', 301, '/hello'],
    ['/hello/elsewhere', 307, '/hello/async'],
  ])('redirects %s with %i', async (path, status, location) => {
    const answer = await ask(path);
    expect(answer).toMatchObject({ status, headers: { location } });
  });

  it('leaves the answer to a handler that takes the response', async () => {
    const { status, headers, text } = await ask('/hello/reply');
    expect({ status, by: headers['x-by'], text }).toEqual({ status: 203, by: 'hand', text: '{"by":"hand"}' });
  });

  it('answers what is returned where the response is passed through', async () => {
    const { status, headers, text } = await ask('/hello/passthrough');
    expect({ status, set: headers['x-set'], text }).toEqual({
      status: 202,
      set: 'by the handler',
      text: '{"through":true}',
    });
  });

  it('answers HEAD like GET, without the body', async () => {
    const get = await ask('/hello');
    const head = await ask('/hello', { method: 'HEAD' });
    expect(head).toEqual({ ...get, text: '' });
    expect(await ask('/hello/head', { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
  });

  it.each([
    ['GET', '/missing?x=1'],
    ['POST', '/hello/params/1/of/2'],
    ['OPTIONS', '/hello/async'],
  ])('answers 404 to %s %s', async (method, path) => {
    const { status, headers, text } = await ask(path, { method });
    expect(status).toBe(404);
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
    expect(JSON.parse(text)).toEqual({ message: `Cannot ${method} ${path}`, error: 'Not Found', statusCode: 404 });
  });
});
