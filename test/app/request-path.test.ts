import type { IncomingMessage, ServerResponse } from 'node:http';
import { Controller, Get, Req, Res } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { PerfService } from '../../src/index.js';
import { adapterOf, either } from '../fixtures/app.js';
import { closeApps, listeningApp, recordsOf, settled } from '../fixtures/build-app.js';
import { uncaughtDuring } from '../fixtures/uncaught.js';
import { withEventLoop } from '../fixtures/usual.js';

withEventLoop();

interface Answer {
  raw?: ServerResponse;
  hijack?: () => void;
}

const throwing = (names: readonly string[]): object =>
  Object.defineProperties(
    {},
    Object.fromEntries(
      names.map((name) => [
        name,
        {
          configurable: true,
          get() {
            throw new Error(`nobody may read ${name}`);
          },
        },
      ]),
    ),
  );

const strangeRoutes: [name: string, route: unknown][] = [
  ["'/legacy'", '/legacy'],
  ['null', null],
  ['{}', {}],
  ['7', 7],
  ['an object whose getters throw', throwing(['path', 'stack', 'methods'])],
  [
    'a proxy that throws',
    new Proxy(
      {},
      {
        get() {
          throw new Error('nobody may read');
        },
      },
    ),
  ],
];

/** Set by each test: what the handler puts on its request once the answer is on its way. */
let spoil: (request: IncomingMessage) => void = () => {};
let blocking = false;
/** Node itself reads them when the response has ended: they throw during the block alone. */
const NODE_READS = new Set(['socket', 'method']);

@Controller()
class PathController {
  @Get('reroutes')
  reroutes(@Req() request: { raw?: object }) {
    spoil((request.raw ?? request) as IncomingMessage);
    return 'done';
  }

  /** From here on nobody of the framework asks the request anything. */
  @Get('spoils')
  async spoils(@Req() request: { raw?: IncomingMessage }, @Res() answer: Answer) {
    answer.hijack?.();
    (answer.raw ?? (answer as ServerResponse)).end('done');
    spoil((request.raw ?? request) as IncomingMessage);
    blocking = true;
    const end = performance.now() + 130;
    while (performance.now() < end);
    blocking = false;
  }
}
const metadata = { controllers: [PathController] };

afterEach(closeApps);

describe.each(either('express'))('what an application puts on a request on %s', (adapter) => {
  it.each(strangeRoutes)(
    '`request.route` is %s, set by a middleware that answers, and by a handler',
    async (_name, route) => {
      spoil = (request) => void Object.assign(request, { route });
      const built = await listeningApp(adapterOf(adapter), {
        metadata,
        beforeInit: (app) => {
          app.use((request: IncomingMessage, response: ServerResponse, next: () => void) => {
            if (request.url !== '/anything') return next();
            spoil(request);
            response.statusCode = 203;
            response.end('from the middleware');
          });
        },
      });
      const uncaught = await uncaughtDuring(async () => {
        expect((await fetch(`${built.url}/anything`)).status).toBe(203);
        expect(await (await fetch(`${built.url}/reroutes`)).text()).toBe('done');
        expect(await recordsOf(built, 2)).toMatchObject([
          { route: '', handler: null, status: 203, outcome: 'completed' },
          { status: 200, outcome: 'completed' },
        ]);
      });
      expect(uncaught).toEqual([]);
    },
  );

  it.each(['headers', 'url', 'originalUrl', 'method', 'socket', 'route'])(
    'a getter that throws in the place of `request.%s`, during a block and after it',
    async (property) => {
      spoil = (request) => {
        const value: unknown = Reflect.get(request, property);
        Object.defineProperty(request, property, {
          configurable: true,
          get() {
            if (blocking || !NODE_READS.has(property)) throw new Error(`nobody may read ${property}`);
            return value;
          },
        });
      };
      const get = async (url: string): Promise<void> => {
        expect(await (await fetch(`${url}/spoils`)).text()).toBe('done');
      };
      const bare = await listeningApp(adapterOf(adapter), { metadata, perf: null });
      expect(await uncaughtDuring(() => get(bare.url)), 'without the module').toEqual([]);

      const built = await listeningApp(adapterOf(adapter), { metadata });
      const sent = 2;
      const uncaught = await uncaughtDuring(async () => {
        // The first one starts the sampler: only then is a block traced to its request, whose URL may not be readable.
        for (let i = 0; i < sent; i++) {
          await get(built.url);
          await settled(built);
        }
        const records = await recordsOf(built, sent);
        expect(records.map(({ status, outcome }) => `${status} ${outcome}`)).toEqual(
          Array.from({ length: sent }, () => '200 completed'),
        );
      });
      expect(uncaught).toEqual([]);
      expect(built.app.get(PerfService).snapshot().eventLoop?.blocks).toBeGreaterThanOrEqual(sent);
    },
  );
});
