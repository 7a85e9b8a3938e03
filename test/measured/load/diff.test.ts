import { randomUUID } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { describe, expect, it } from 'vitest';
import { recordingOf, run, runDiff, serve } from '../../fixtures/load-command.js';

const LONG = process.env['PERF_LONG'] !== undefined;

interface Planted {
  /** Another answer to one item of forty. */
  readonly status?: true;
  readonly missing?: true;
  readonly type?: true;
  readonly value?: true;
  /** Of the work of a search. */
  readonly slower?: number;
}

/** A release: its items, with what no two answers have in common; and a search that works for 2 ms. */
const release =
  ({ status, missing, type, value, slower = 1 }: Planted = {}): RequestListener =>
  (request, response) => {
    const { pathname } = new URL(request.url!, 'http://shop');
    response.setHeader('content-type', 'application/json');
    if (pathname === '/search') {
      const endsAt = performance.now() + 2 * slower;
      while (performance.now() < endsAt);
      response.end('{"hits":[1,2]}');
      return;
    }
    const id = pathname.split('/')[2]!;
    if (status && id === '7') response.statusCode = 404;
    const tags = Math.random() < 0.5 ? ['a', 'b'] : ['b', 'a'];
    const changing = { at: new Date(), nonce: Math.random(), tags, flaky: Math.random() < 0.3 };
    const stock = type ? '7' : 7;
    response.end(JSON.stringify({ id, ...changing, price: value ? 1.2 : 1, stock, ...(missing ? {} : { name: 'x' }) }));
  };

const recorded = recordingOf([
  ...Array.from({ length: 40 }, (_, i) => ({ url: `/items/${i}`, route: '/items/:id' })),
  ...Array.from({ length: 40 }, (_, i) => ({ url: `/search?q=${i}`, route: '/search' })),
]);

const compared = async (planted: Planted) =>
  runDiff(recorded, [await serve(release()), await serve(release()), await serve(release(planted))]);

const EVERYTHING: Planted = { status: true, missing: true, type: true, value: true, slower: 2 };
/** What is said of each. */
const LINES: Readonly<Record<keyof Planted, RegExp>> = {
  status: /^GET \/items\/:id {2}status 200 → 404 in 1 of 40 answers .*such as GET \/items\/7$/m,
  missing:
    /^GET \/items\/:id {2}shape: name is missing in \d+ of 40 answers \(the same release again: 0\), such as GET \/items\/\d+$/m,
  type: /^GET \/items\/:id {2}shape: stock has another type in \d+ of 40 answers/m,
  value: /^GET \/items\/:id {2}price has another value in \d+ of 40 answers/m,
  slower: /^GET \/search {2}latency \+\d+ % \(95 % interval \+\d+ % to \+\d+ %\): \d/m,
};
const planted = Object.keys(LINES) as (keyof Planted)[];

describe('diff', { timeout: 300_000 }, () => {
  // An interval of 95 % lets one comparison in twenty say more by chance; what is wrong is wrong each time.
  it('finds every planted change, one in a single request of forty too, and nothing else', { retry: 2 }, async () => {
    const ran = await compared(EVERYTHING);
    for (const change of planted) expect(ran.stdout).toMatch(LINES[change]);
    expect(ran.json.findings).toHaveLength(planted.length);
    expect(ran.json.findings[0]).toMatchObject({ route: 'GET /items/:id', kind: 'status' });
    expect(ran.stdout).toMatch(/^diff: 2 of 2 routes differ, 5 differences in 80 requests of 2 routes\.$/m);
    expect(ran.status).toBe(1);
  });

  it('is silent about the same release, whose answers differ each time', { retry: 2 }, async () => {
    const ran = await compared({});
    expect(ran.stdout).toBe(
      'diff: no difference in 80 requests of 2 routes beyond what the same release differs from itself.\n',
    );
    expect(ran.status).toBe(0);
    expect(ran.json.routes).toMatchObject([
      { pairs: 40, latency: { ci: [expect.any(Number), expect.any(Number)] } },
      {},
    ]);
  });

  it('tells another status of what may not be asked twice, however few there were', async () => {
    const orders =
      (status: number): RequestListener =>
      (_, response) =>
        response.writeHead(status).end('{}');
    const file = recordingOf([{ method: 'POST', url: '/orders', route: '/orders' }]);
    const running = await serve(orders(201));
    const ran = await runDiff(file, [running, running, await serve(orders(500))], '--allow', 'POST /orders');
    expect(ran.stdout).toContain('POST /orders  status 201 → 500 in 1 of 1 answers');
    expect(ran.status).toBe(1);
  });

  it('tells what differs in each of few answers that may not be asked for twice', async () => {
    const search =
      (answer: object): RequestListener =>
      (_, response) =>
        response.setHeader('content-type', 'application/json').end(JSON.stringify({ ...answer, at: Math.random() }));
    const file = recordingOf(Array.from({ length: 4 }, () => ({ method: 'POST', url: '/search', route: '/search' })));
    const [running, candidate] = [await serve(search({ price: 1 })), await serve(search({ price: '1', x: 2 }))];
    const ran = await runDiff(file, [running, running, candidate], '--allow', 'POST /search');
    expect(ran.stdout).toContain('POST /search  shape: price has another type in 4 of 4 answers');
    expect(ran.stdout).toContain('POST /search  shape: x is new in 4 of 4 answers');
    expect(ran.json.findings).toHaveLength(2);
    expect(ran.status).toBe(1);
  });

  it('tells another type of content and another place to go to', async () => {
    const pages =
      (type: string, place: string): RequestListener =>
      ({ url }, response) => {
        if (url === '/page') response.setHeader('content-type', type).end('<b>');
        else response.writeHead(302, { location: place }).end();
      };
    const file = recordingOf([...Array.from({ length: 4 }, () => ({ url: '/page' })), { url: '/login', status: 302 }]);
    const running = [await serve(pages('text/plain', '/home')), await serve(pages('text/plain', '/home'))];
    const ran = await runDiff(file, [...running, await serve(pages('text/html', '//evil.com'))]);
    expect(ran.stdout).toContain('GET /page  header content-type has another value in 40 of 40 answers');
    expect(ran.stdout).toContain('GET /login  header location has another value in 40 of 40 answers');
    expect(ran.json.findings[0]).toMatchObject({ kind: 'header', path: 'content-type' });
    expect(ran.status).toBe(1);
  });

  it('does not call the own origin and path another place', async () => {
    const places = ['/absolute', '/relative', '/root'];
    const leading =
      (prefix: string, host?: string): RequestListener =>
      ({ url, headers }, response) => {
        const own = `http://${host ?? headers.host}${prefix}`;
        const location = [`${own}/home`, `${prefix}/home`, prefix === '' ? '/' : prefix][
          places.findIndex((place) => prefix + place === url)
        ];
        response.writeHead(302, { location }).end();
      };
    const file = recordingOf(places.map((url) => ({ url, status: 302 })));
    const running = await serve(leading(''));
    const compare = async (candidate: string) =>
      (await runDiff(file, [running, running, candidate])).json.findings.map(({ route }: { route: string }) => route);
    expect(await compare(`${await serve(leading('/v2'))}/v2`)).toEqual([]);
    expect(await compare(await serve(leading('', 'evil.example')))).toEqual(['GET /absolute']);
  });

  it('does not call alike what it could not ask for: requests without their body, and a route that refuses all', async () => {
    const came: string[] = [];
    const url = await serve((request, response) => {
      came.push(`${request.method} ${request.url}`);
      response.writeHead(request.url === '/me' ? 401 : 200).end('{}');
    });
    const post = { method: 'POST', url: '/search', redacted: ['body'] };
    const file = recordingOf([
      ...Array.from({ length: 4 }, (_, i) => ({ url: `/items/${i}`, route: '/items/:id' })),
      ...Array.from({ length: 2 }, () => ({ url: '/me' })),
      post,
      post,
      { ...post, url: '/upload' },
      { ...post, url: '/orders', body: {}, redacted: ['body.card'] },
    ]);
    const allow = ['/search', '/upload', '/orders'].flatMap((path) => ['--allow', `POST ${path}`]);
    const ran = await runDiff(file, [url, url, url], ...allow);
    expect(ran.stdout).toContain(
      '3 requests are left out, since their body is not in the recording, which keeps JSON and forms up to `record({ maxBodyBytes })`, by default none: POST /search, POST /upload\n',
    );
    expect(ran.stdout).toContain('GET /me  is not compared: --primary refuses 40 of 40 requests.\n');
    expect(ran.stdout).toMatch(/^diff: no difference in 41 requests of 2 routes /m);
    expect(ran.json.routes).toContainEqual(
      expect.objectContaining({ name: 'GET /me', notCompared: '--primary refuses 40 of 40 requests' }),
    );
    expect(new Set(came.filter((request) => request.startsWith('POST')))).toEqual(new Set(['POST /orders']));
    const alone = await run('replay', recordingOf([post]), '--target', url, '--allow', 'POST /search');
    expect(alone.stderr).toMatch(/holds no request that may be sent\. 1 requests are left out, since their body/);
    expect(alone.status).toBe(64);
  });

  it('does not call alike what never repeats: pages with a nonce', { retry: 2 }, async () => {
    const url = await serve((_, response) => {
      response.setHeader('content-type', 'text/html');
      response.end(`<script nonce="${randomUUID()}"></script>`);
    });
    const nothing = await runDiff(recordingOf([{ url: '/page' }]), [url, url, url]);
    expect(nothing.stdout).toBe('GET /page  is not compared: its answers hardly ever repeat.\n');
    expect(nothing.stderr).toBe('There is nothing to compare: no route is left.\n');
    expect(nothing.status).toBe(64);
  });

  it('compares whole answers where a client had one already', async () => {
    const known =
      (price: unknown): RequestListener =>
      ({ headers }, response) => {
        if (headers['if-none-match'] !== undefined) response.writeHead(304).end();
        else response.setHeader('content-type', 'application/json').end(JSON.stringify({ price }));
      };
    const file = recordingOf([{ url: '/item', status: 304, headers: { 'if-none-match': '"updated at noon"' } }]);
    const running = await serve(known(1));
    const ran = await runDiff(file, [running, running, await serve(known('1'))]);
    expect(ran.stdout).toMatch(/^GET \/item {2}shape: price has another type in 40 of 40 answers/);
    expect(ran.status).toBe(1);
  });

  it('keeps the path of a target before that of each request', async () => {
    const came = new Set<string>();
    const url = await serve((request, response) => {
      came.add(request.url!);
      response.end();
    });
    const file = recordingOf([{ url: '/items/1?q=2', route: '/items/:id' }]);
    const ran = await runDiff(file, [`${url}/v1`, `${url}/v1/`, `${url}/v2`]);
    expect(ran.status).toBe(0);
    expect([...came].toSorted()).toEqual(['/v1/items/1?q=2', '/v2/items/1?q=2']);
    const query = await run('replay', file, '--target', `${url}/?a=b`);
    expect(query.stderr).toContain('--target must hold no query');
    expect(query.status).toBe(64);
  });

  it.runIf(LONG)('finds a planted change 19 times of 20, and says nothing of none 19 times of 20', async () => {
    let [found, silent] = [0, 0];
    for (let i = 0; i < 20; i++) {
      const change = planted[i % planted.length]!;
      const ran = await compared({ [change]: EVERYTHING[change] });
      if (LINES[change].test(ran.stdout) && ran.json.findings.length === 1) found += 1;
      if ((await compared({})).status === 0) silent += 1;
    }
    expect(found).toBeGreaterThanOrEqual(19);
    expect(silent).toBeGreaterThanOrEqual(19);
  });
});
