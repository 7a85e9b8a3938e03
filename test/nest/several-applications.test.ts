import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Controller, Get, type INestApplication, Param, Post, Body, UseInterceptors } from '@nestjs/common';
import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { map, of } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import type { RequestRecord } from '../../src/index.js';
import { type Application, ask, createApplication, type Form, forms, withJson } from './applications.js';

type Listener = (request: unknown, response: unknown) => void;
const listenerOf = (app: INestApplication): Listener => app.getHttpAdapter().getInstance() as Listener;

const LARGE = 'a large body. '.repeat(1_000);

class Naming implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(map((value: object) => ({ ...value, intercepted: true })));
  }
}
@Controller('hello')
class HelloController {
  @Get()
  hello() {
    return 'Hello world!';
  }
  @Get('async')
  async later() {
    await new Promise((resolve) => setImmediate(resolve));
    return 'Hello world!';
  }
  @Get('stream')
  stream() {
    return of('Hello world!');
  }
  @Get('large')
  large() {
    return { text: LARGE };
  }
  @Get('items/:id')
  @UseInterceptors(Naming)
  item(@Param('id') id: string) {
    return { id, parameters: arguments.length };
  }
  @Post()
  create(@Body() body: unknown) {
    return { body };
  }
  @Get('fails')
  fails() {
    throw new Error('not told');
  }
}

const controllers = [HelloController];
const open: { server: Server; close: () => Promise<unknown> }[] = [];
afterEach(async () => {
  for (const { server, close } of open.splice(0)) {
    server.closeAllConnections();
    await close();
  }
});

async function listening(server: Server, close: () => Promise<unknown>): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push({ server, close });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
const closed = (server: Server) => new Promise((resolve) => server.close(resolve));

async function initialised(form: Form, application: Application) {
  const created = await createApplication(form, 'express', application);
  await created.app.init();
  return created;
}
/** Which of the applications has recorded what, as the routes' handlers. */
const handlersOf = (records: RequestRecord[]) => records.map(({ handler, status }) => [handler, status]);

async function answersOf(url: string, prefix: string) {
  const answers: Record<string, [number, string]> = {};
  for (const path of ['', '/async', '/stream', '/large', '/items/7', '/fails']) {
    const { status, text } = await ask(`${url}${prefix}/hello${path}`);
    answers[path] = [status, text];
  }
  const posted = await ask(`${url}${prefix}/hello`, withJson('POST', { a: 1 }));
  answers['POST'] = [posted.status, posted.text];
  return answers;
}
const expected = {
  '': [200, 'Hello world!'],
  '/async': [200, 'Hello world!'],
  '/stream': [200, 'Hello world!'],
  '/large': [200, JSON.stringify({ text: LARGE })],
  '/items/7': [200, '{"id":"7","parameters":1,"intercepted":true}'],
  '/fails': [500, '{"statusCode":500,"message":"Internal server error"}'],
  POST: [201, '{"body":{"a":1}}'],
};
const recorded = [
  ['HelloController.hello', 200],
  ['HelloController.later', 200],
  ['HelloController.stream', 200],
  ['HelloController.large', 200],
  ['HelloController.item', 200],
  ['HelloController.fails', 500],
  ['HelloController.create', 201],
];

const pairs: [Form, Form][] = forms.flatMap((first) => forms.map((second): [Form, Form] => [first, second]));

describe('on Express', () => {
  describe.each(pairs)('two applications, one %s and one %s,', (firstForm, secondForm) => {
    it('answer on one Express with an adapter each', async () => {
      const first = await initialised(firstForm, { controllers });
      const second = await initialised(secondForm, {
        controllers,
        adapter: () => new ExpressAdapter(listenerOf(first.app)),
        main: (app) => app.setGlobalPrefix('/app2'),
      });
      const server = createServer(listenerOf(first.app));
      const url = await listening(server, async () => {
        await closed(server);
        await first.app.close();
        await second.app.close();
      });
      expect(await answersOf(url, '')).toEqual(expected);
      expect((await ask(`${url}/missing`)).status).toBe(404);
    });

    it('answer when one is mounted in the other, and each request is recorded by the one whose route it is', async () => {
      const inner = await initialised(secondForm, { controllers });
      const outer = await initialised(firstForm, {
        controllers,
        main: (app) => app.use('/b', listenerOf(inner.app)),
      });
      const server = outer.app.getHttpServer() as Server;
      const url = await listening(server, async () => {
        await outer.app.close();
        await inner.app.close();
      });
      expect(await answersOf(url, '')).toEqual(expected);
      const ofOuter = await outer.newRecords();
      if (ofOuter !== null) expect(handlersOf(ofOuter)).toEqual(recorded);
      expect((await inner.newRecords()) ?? []).toEqual([]);
      expect(await answersOf(url, '/b')).toEqual(expected);
      const passing = (await outer.newRecords()) ?? [];
      const statuses = secondForm === 'bare' ? recorded.map(([, status]) => status) : [];
      if (firstForm === 'instrumented') expect(passing.map(({ status }) => status)).toEqual(statuses);
      const ofInner = await inner.newRecords();
      if (ofInner !== null) expect(handlersOf(ofInner)).toEqual(recorded);
    });
  });

  it.each(forms)('an application in the %s form answers on a server of its own making', async (form) => {
    const { app, newRecords } = await initialised(form, { controllers });
    const server = createServer(listenerOf(app));
    const url = await listening(server, async () => {
      await closed(server);
      await app.close();
    });
    expect(await answersOf(url, '')).toEqual(expected);
    const records = await newRecords();
    if (records !== null) expect(handlersOf(records)).toEqual(recorded);
  });

  it.each(forms)('an application in the %s form answers on its own server and a second one', async (form) => {
    const { app, newRecords } = await initialised(form, { controllers });
    const own = app.getHttpServer() as Server;
    const second = createServer(listenerOf(app));
    const urlOfOwn = await listening(own, () => app.close());
    const urlOfSecond = await listening(second, () => closed(second));
    expect(await answersOf(urlOfOwn, '')).toEqual(expected);
    expect(await answersOf(urlOfSecond, '')).toEqual(expected);
    const records = await newRecords();
    if (records !== null) expect(handlersOf(records)).toEqual([...recorded, ...recorded]);
  });
});
