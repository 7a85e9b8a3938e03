import type { RequestListener } from 'node:http';
import { describe, expect, it } from 'vitest';
import { recordingOf, runUntilNotVoid, serve } from '../../fixtures/load-command.js';

// What a ramp says where how fast the machine is decides nothing: so beside other suites. The rest is in ramp.test.ts.
/** Each is judged alike: the short run has one of them. */
const WORSE_FROM_THE_START: [string, RequestListener][] = [
  ['slower', (_, response) => void setTimeout(() => response.end(), 30)],
  ...(process.env['PERF_LONG'] === undefined
    ? []
    : ([
        ['broken', (_, response) => void response.writeHead(500).end()],
        ['unwilling', (_, response) => void response.writeHead(429).end()],
      ] satisfies [string, RequestListener][])),
];

describe('ramp', { timeout: 300_000 }, () => {
  it('holds all of it, with the requests of a recording that may be sent', async () => {
    const asked = new Set<string>();
    const url = await serve((request, response) => {
      if (request.url !== '/perf/snapshot')
        asked.add(`${request.method} ${request.url} ${String(request.headers['x-shop'])}`);
      response.end('{}');
    });
    const from = recordingOf([{ url: '/a' }, { url: '/b?c=1' }, { url: '/orders', method: 'POST', body: { a: 1 } }]);
    const args = ['--from', from, '--start', '40', '--steps', '1,2', '--header', 'x-shop: 7', '--hold', '400ms'];
    const ran = await runUntilNotVoid('ramp', url, ...args, '--rest', '0s');
    expect(ran.stdout).toMatch(/^ramp: holds 2X \(80\/s\)/m);
    expect(ran.stdout).toContain(
      "1 requests are left out, since they may change data. If they may be sent: --allow 'POST /orders'",
    );
    expect(ran.status).toBe(0);
    expect(ran.json.steps.map(({ requests }: { requests: number }) => requests)).toEqual([16, 32]);
    expect([...asked].toSorted()).toEqual(['GET /a 7', 'GET /b?c=1 7']);
  });

  it.each(WORSE_FROM_THE_START)(
    'ends with 1 where the server was %s before there was any load: it has come back to that',
    async (_, server) => {
      const args = [
        '--start',
        '20',
        '--steps',
        '1',
        '--hold',
        '400ms',
        '--rest',
        '500ms',
        '--gate',
        'p95<5ms errors<1%',
      ];
      const ran = await runUntilNotVoid('ramp', await serve(server), ...args);
      expect(ran.stdout).toMatch(/^ramp: holds nothing\. 1X \(20\/s\) fails /m);
      expect(ran.stdout).not.toContain('does not recover');
      expect(ran.status).toBe(1);
    },
  );

  it('ends with 1 where the routes of a server differ in speed, and it is as it was', async () => {
    const url = await serve(({ url }, response) => void setTimeout(() => response.end(), url === '/slow' ? 120 : 0));
    const from = recordingOf(Array.from({ length: 20 }, (_, i) => ({ url: i % 2 === 0 ? '/fast' : '/slow' })));
    const args = ['--from', from, '--start', '20', '--steps', '1', '--hold', '400ms', '--rest', '700ms'];
    const ran = await runUntilNotVoid('ramp', url, ...args, '--gate', 'p95<50ms');
    expect(ran.stdout).toMatch(/^ramp: holds nothing\. 1X \(20\/s\) fails p95<50ms: \d{3} ms\.$/m);
    expect(ran.stdout).toMatch(/^recovery: \d+(\.\d)? ms after 1X\.$/m);
    expect(ran.status).toBe(1);
  });

  it('says why nothing holds where nobody answers, and that another page answers than was asked for', async () => {
    const args = ['--start', '20', '--steps', '1', '--hold', '300ms', '--rest', '0s'];
    const dead = await runUntilNotVoid('ramp', 'http://127.0.0.1:1', ...args);
    expect(dead.stdout).toMatch(/^ramp: holds nothing\. 1X \(20\/s\) fails p95<1s: no answer, errors<1%: 100 %\.$/m);
    expect(dead.stdout).toMatch(/^why: errors: 6 × ECONNREFUSED\.$/m);
    expect(dead.status).toBe(1);

    const url = await serve((_, response) => response.writeHead(302, { location: '/login' }).end());
    const { stdout } = await runUntilNotVoid('ramp', url, ...args);
    expect(stdout).toMatch(/^6 of 6 answers have another status than expected, most 200 → 302\./m);
  });
});
