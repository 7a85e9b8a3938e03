import type { RequestListener } from 'node:http';
import { Controller, Get } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { afterEach, describe, expect, it } from 'vitest';
import { NoCompression, PerfService } from '../../src/index.js';
import { type BuiltApp, buildApp, closeApps, closeServer, ownServer, recordsOf } from '../fixtures/build-app.js';
import { callAccepting } from '../fixtures/http-client.js';

const TEXT = 'compressible '.repeat(2_000);

@Controller('a')
class AController {
  @Get('text')
  text() {
    return { text: TEXT };
  }
  @Get('plain')
  @NoCompression()
  plain() {
    return { text: TEXT };
  }
}
@Controller('b')
class BController {
  @Get('text/:id')
  text() {
    return { text: TEXT };
  }
  @Get('small')
  small() {
    return { b: 1 };
  }
}
const ofA = { controllers: [AController] };
const ofB = { controllers: [BController] };

let close = async (): Promise<void> => {};
afterEach(async () => {
  await close();
  await closeApps();
});
async function served(adapter: ExpressAdapter): Promise<string> {
  const { server, url } = await ownServer(adapter.getInstance<RequestListener>());
  close = () => closeServer(server);
  return url;
}
const inFlightOf = ({ app }: BuiltApp): number =>
  app
    .get(PerfService)
    .snapshot()
    .routes.reduce((sum, { inFlight }) => sum + inFlight, 0);

interface Joined {
  first: ExpressAdapter;
  a: BuiltApp;
  b: BuiltApp;
}
/** The adapter that a server is made of comes first. */
const together: [name: string, prefix: string, join: (perf: null | undefined) => Promise<Joined>][] = [
  [
    'on one Express application',
    '',
    async (perf) => {
      const first = new ExpressAdapter();
      const second = new ExpressAdapter(first.getInstance());
      // In step, as in Nest's own tests: who is initialised first answers 404 to what the other one serves.
      let [go, waiting] = [(): void => {}, 0];
      const both = new Promise<void>((resolve) => (go = resolve));
      const beforeInit = (): Promise<void> => {
        if ((waiting += 1) === 2) go();
        return both;
      };
      const [a, b] = await Promise.all([
        buildApp(first, { metadata: ofA, beforeInit, ...options(perf) }),
        buildApp(second, { metadata: ofB, beforeInit, ...options(perf) }),
      ]);
      return { first, a, b };
    },
  ],
  [
    'one mounted in the other with `use()`',
    '/mounted',
    async (perf) => {
      const [first, second] = [new ExpressAdapter(), new ExpressAdapter()];
      const b = await buildApp(second, { metadata: ofB, ...options(perf) });
      const mount = (): void => void first.getInstance().use('/mounted', second.getInstance());
      return { first, a: await buildApp(first, { metadata: ofA, beforeInit: mount, ...options(perf) }), b };
    },
  ],
];
const options = (perf: null | undefined): { perf?: null } => (perf === null ? { perf } : {});

describe.each(together)('two Nest applications, %s', (_name, prefix, join) => {
  const paths = ['/a/text', `${prefix}/b/small`, `${prefix}/b/text/7`, '/a/plain'];

  it('answer without the module, which this comparison needs', async () => {
    const { first } = await join(null);
    const url = await served(first);
    for (const path of paths) expect([path, (await callAccepting(url + path, 'gzip')).status]).toEqual([path, 200]);
  });

  it('answer small and large bodies, and each has the records of its own routes', async () => {
    const { first, a, b } = await join(undefined);
    const url = await served(first);
    for (const path of paths) {
      const response = await callAccepting(url + path, 'gzip');
      expect([path, response.status]).toEqual([path, 200]);
      expect(response.text.length).toBeGreaterThan(0);
      expect(response.headers['content-encoding'], path).toBe(path.includes('text') ? 'gzip' : undefined);
    }
    const told = async (of: BuiltApp): Promise<unknown[]> =>
      (await recordsOf(of, 2)).map(({ route, status }) => [route, status]);
    expect(await told(a)).toEqual([
      ['/a/text', 200],
      ['/a/plain', 200],
    ]);
    expect(await told(b)).toEqual([
      ['/b/small', 200],
      ['/b/text/:id', 200],
    ]);
    expect([inFlightOf(a), inFlightOf(b)]).toEqual([0, 0]);
  }, 15_000);
});
