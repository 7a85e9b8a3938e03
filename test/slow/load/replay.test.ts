import { describe, expect, it } from 'vitest';
import { checkTarget } from '../../../packages/load/src/target.js';
import { recordingOf, run, runUntilNotVoid, serve } from '../../fixtures/load-command.js';

describe('replay', { timeout: 300_000 }, () => {
  it('sends sessions in their order, each request at its time, as often as it was recorded', async ({ skip }) => {
    const came: { url: string; at: number; body: string }[] = [];
    const recorded = Array.from({ length: 60 }, (_, i) => ({
      url: `/s${i % 3}/${Math.floor(i / 3)}`,
      route: '/:session/:step',
      session: `session ${i % 3}`,
    }));
    const file = recordingOf([
      ...recorded,
      { url: '/search', method: 'POST', headers: { 'content-type': 'application/json' }, body: { q: 1 } },
    ]);
    const url = await serve((request, response) => {
      const at = performance.now();
      // One session is slow: its next request waits, the others' do not.
      const isSlow = request.url!.startsWith('/s1');
      let body = '';
      request.on('data', (data) => (body += String(data)));
      request.on('end', () => {
        came.push({ url: request.url!, at, body });
        setTimeout(() => response.end('{}'), isSlow ? 40 : 0);
      });
    });
    const args = ['--speed', '2', '--allow', 'POST /search', '--gate', 'p95<1s errors<1%'];
    const ran = await runUntilNotVoid('replay', file, '--target', url, ...args);
    skip(ran.json.lateShare > 0, `${Math.round(100 * ran.json.lateShare)} % of the generator's own starts were late`);
    expect(ran.status).toBe(0);
    const last = came.slice(-61);
    for (const session of [0, 1, 2]) {
      const own = last.filter((each) => each.url.startsWith(`/s${session}/`));
      expect(own.map((each) => each.url)).toEqual(Array.from({ length: 20 }, (_, step) => `/s${session}/${step}`));
    }
    const lasted = (name: string): number =>
      last.find((each) => each.url === `${name}/19`)!.at - last.find((each) => each.url === `${name}/0`)!.at;
    // 570 ms apart when they were recorded, at twice the speed; the slow one needs 40 ms for each.
    expect(lasted('/s0') / 285).toBeGreaterThan(0.8);
    expect(lasted('/s0')).toBeLessThan(lasted('/s1'));
    expect(lasted('/s1')).toBeGreaterThan(19 * 38);
    expect(last.find((each) => each.url === '/search')!.body).toBe('{"q":1}');
    expect(ran.stdout).toMatch(/^GET \/:session\/:step +60 requests/m);
    expect(ran.stdout).toMatch(/^replay +61 requests .* holds$/m);
    // From the time at which they were to start: each request of the slow session waits longer for those before it.
    expect(ran.json.durationMs.max).toBeGreaterThan(19 * 38 - 285);
    expect(ran.json).toMatchObject({ requests: 61, errorShare: 0, routes: [{ requests: 60 }, { requests: 1 }] });
  });

  it('lets requests of a session run beside one another, as they did when they were recorded', async () => {
    let [open, most] = [0, 0];
    const url = await serve((_, response) => {
      most = Math.max(most, (open += 1));
      setTimeout(() => {
        open -= 1;
        response.end();
      }, 100);
    });
    const page = Array.from({ length: 6 }, (_, i) => ({
      url: `/part/${i}`,
      session: 'a',
      t: 1_000 + i,
      durationMs: 100,
    }));
    const next = { url: '/next', session: 'a', t: 1_110, durationMs: 100 };
    const ran = await runUntilNotVoid('replay', recordingOf([...page, next]), '--target', url);
    expect(ran.status).toBe(0);
    expect(most).toBe(6);
    // One after the other they would take 700 ms.
    expect(ran.json.durationMs.max).toBeLessThan(650);
  });

  it('says when answers are not what was recorded, and fails its gate', async () => {
    const file = recordingOf(Array.from({ length: 20 }, () => ({ url: '/me' })));
    const target = ['--target', await serve((_, response) => response.writeHead(401).end())];
    const ran = await runUntilNotVoid('replay', file, ...target, '--gate', 'p50<0.001ms');
    expect(ran.stdout).toContain(
      '20 of 20 answers have another status than was recorded, most 200 → 401. Is a header missing',
    );
    expect(ran.stdout).toMatch(/fails p50<0\.001ms: /);
    expect(ran.stdout).toContain('20 of 20 answers refuse what was to be answered');
    expect(ran.status).toBe(1);
  });

  it('sends a condition only where it was met: of the others it does not know all that was asked for', async () => {
    const asked: unknown[] = [];
    const url = await serve(({ headers }, response) => {
      asked.push(headers['if-none-match']);
      response.end();
    });
    const headers = { 'if-none-match': '"a"' };
    const file = recordingOf([200, 304].map((status) => ({ url: '/me', status, headers })));
    await run('replay', file, '--target', url);
    expect(asked.slice(0, 2)).toEqual([undefined, '"a"']);
  });

  it('says why there was no answer, and ends with 1 where nobody answers, also without a gate', async () => {
    const file = recordingOf(Array.from({ length: 5 }, () => ({ url: '/me' })));
    const ran = await runUntilNotVoid('replay', file, '--target', 'http://127.0.0.1:1');
    expect(ran.stdout).toMatch(
      /^errors: 5 × ECONNREFUSED\nreplay +5 requests  p50 +-  p95 +-  p99 +-  errors 100 %  fails no answer at all$/m,
    );
    expect(ran.status).toBe(1);
  });

  it('blames nobody for what it was given: a timeout is rounded, and what cannot be sent is refused', async () => {
    const target = ['--target', await serve((_, response) => response.end())];
    const file = recordingOf(Array.from({ length: 5 }, () => ({ url: '/me' })));
    const ran = await runUntilNotVoid('replay', file, ...target, '--timeout', '1.005s', '--header', 'x-name: Zoë');
    expect(ran.json).toMatchObject({ requests: 5, errorShare: 0 });
    for (const wrong of [
      ['--header', 'x-name: Łukasz'],
      ['--header', 'transfer-encoding: chunked'],
    ]) {
      const refused = await run('replay', file, ...target, ...wrong);
      expect(refused.stderr).toContain(wrong[0]);
      expect(refused.status).toBe(64);
    }
  });

  it('makes no command of a path that a stranger chose, and quotes a route for a shell', async () => {
    const file = recordingOf([
      { url: "/';touch$IFS/x;'", method: 'POST', route: '' },
      { url: '/it/1', method: 'POST', route: "/it's/:id" },
    ]);
    const { stderr } = await run('replay', file, '--target', 'http://localhost:1');
    expect(stderr).not.toContain('touch');
    expect(stderr).toContain(`--allow 'POST /it'"'"'s/:id'`);
    const stranger = recordingOf([{ url: "/';touch$IFS/x;'", method: 'POST', route: '' }]);
    expect((await run('replay', stranger, '--target', 'http://localhost:1')).stderr).not.toContain('touch');
  });

  it('sends nothing to any but this machine, unless a host is named in full, and nothing that changes data', async () => {
    const file = recordingOf([{ url: '/a', method: 'DELETE' }]);
    const refused = [
      [
        ['replay', file, '--target', 'http://10.0.0.1'],
        '--target is 10.0.0.1, not this machine. If it is yours to load, say so: --target-is-mine 10.0.0.1',
      ],
      [
        ['replay', file, '--target', 'http://localhost:1'],
        "holds no request that may be sent. Only GET and HEAD are sent unless you say: --allow 'DELETE /a'",
      ],
      [['ramp', 'http://127.0.0.1:1', '--snapshot-path', '//10.0.0.1/a'], '--snapshot-path must be a path'],
      [['diff', file, '--primary', 'http://localhost:1', '--nothing'], "Unknown option '--nothing'"],
    ] as const;
    for (const [args, message] of refused) {
      const ran = await run(...args);
      expect(ran.stderr).toContain(message);
      expect(ran.status).toBe(64);
    }
  });
});

describe('a target', () => {
  it('is this machine, or named in full', () => {
    const ok = [
      ['http://localhost:3000'],
      ['http://127.0.0.7/a'],
      ['http://[::1]:1'],
      ['https://api.shop.com:8443', 'api.shop.com'],
      ['http://10.0.0.1:81', '10.0.0.1:81'],
    ] as const;
    for (const [url, ...mine] of ok) expect(checkTarget(url, '<url>', mine).origin).toBe(new URL(url).origin);
    const wrong = [
      ['https://127.0.0.1.evil.com'],
      ['http://localhost.evil.com'],
      ['http://api.shop.com', 'shop.com'],
      ['http://me:pw@localhost'],
      ['file:///etc/passwd'],
      ['localhost:3000'],
    ] as const;
    for (const [url, ...mine] of wrong) expect(() => checkTarget(url, '<url>', mine)).toThrow('<url>');
    expect(() => checkTarget(undefined, '--candidate', [])).toThrow('--candidate is missing');
  });
});
