import type { RequestListener } from 'node:http';
import { describe, expect, it } from 'vitest';
import { recordingOf, runDiff, serve } from '../../fixtures/load-command.js';

const items = recordingOf(Array.from({ length: 80 }, (_, i) => ({ url: `/items/${i}`, route: '/items/:id' })));
const alike: RequestListener = (_, response) => response.end('{}');
/** Answers so many, and no more. */
const dying = (answers: number): RequestListener => {
  let left = answers;
  return (_, response) => (left-- > 0 ? response.end('{}') : response.destroy());
};
/** Leaves some without an answer: of the recording, each this-many-th. */
const leaving =
  (each: number): RequestListener =>
  (request, response) =>
    Number(request.url!.split('/')[2]) % each === each / 2 ? response.destroy() : response.end('{}');

describe('diff', { timeout: 300_000 }, () => {
  it('says so where there is nothing to compare: nobody answers, or all refuse what was served', async () => {
    const gone = 'http://127.0.0.1:1';
    const post = recordingOf([{ method: 'POST', url: '/search', route: '/search' }]);
    const silent = await runDiff(post, [gone, gone, gone], '--allow', 'POST /search');
    expect(silent.stderr).toContain(`has not answered 1 of 1 requests (--primary ${gone}: ECONNREFUSED)`);
    const url = await serve((_, response) => response.writeHead(401).end());
    const refused = await runDiff(items, [url, url, url]);
    expect(refused.stdout).toContain('80 of 80 answers have another status than was recorded, most 200 → 401');
    expect(refused.stderr).toContain('--primary refuses 80 of 80 requests: there is nothing to compare');
    expect([silent.status, refused.status]).toEqual([64, 64]);
  });

  it('asks for no more requests of a route than its statistics can hold', async () => {
    const nobody = Array.from({ length: 3 }, () => 'http://127.0.0.1:1');
    const refused = await runDiff(items, nobody, '--requests-per-route', '2001');
    expect(refused.stderr).toContain('--requests-per-route must be at most 2000: more tell nothing new, got "2001".');
    expect(refused.status).toBe(64);
    expect((await runDiff(items, nobody, '--requests-per-route', '2000')).stderr).toContain('ECONNREFUSED');
  });

  it('says which of them does not answer', async () => {
    const url = await serve(alike);
    const ran = await runDiff(items, [url, url, 'http://127.0.0.1:1']);
    expect(ran.stderr).toContain('--candidate http://127.0.0.1:1 does not answer: ECONNREFUSED');
    expect(ran.status).toBe(64);
  });

  it.each(['primary', 'secondary'])('says that --%s stopped answering', async (role) => {
    // The warm-up takes 20.
    const servers = { primary: alike, secondary: alike, candidate: alike, [role]: dying(50) };
    const ran = await runDiff(items, await Promise.all(Object.values(servers).map(serve)));
    expect(ran.stderr).toMatch(
      new RegExp(`^The running release has not answered 50 of 80 requests \\(--${role} http://`),
    );
    expect(ran.status).toBe(64);
  });

  it('says that the running release has not answered too many, and counts only what was compared', async () => {
    const servers = await Promise.all([serve(leaving(10)), serve(alike), serve(alike)]);
    const ran = await runDiff(items, servers);
    expect(ran.stderr).toMatch(/^The running release has not answered 8 of 80 requests \(--primary http:\/\/\S+: /);
    expect(ran.status).toBe(64);
    const few = await Promise.all([1, 2, 3].map(() => serve(leaving(80))));
    const compared = await runDiff(items, few);
    expect(compared.stdout).toMatch(/^diff: no difference in 79 requests of 1 route /m);
    expect(compared.json.requests).toBe(79);
  });

  it('calls a candidate that dies, or crashes on one route, a difference', async () => {
    const died = await runDiff(items, [await serve(alike), await serve(alike), await serve(dying(50))]);
    expect(died.stdout).toMatch(/^GET \/items\/:id {2}status 200 → \w+ in 50 of 80 answers/m);
    expect(died.status).toBe(1);
    const crashing: RequestListener = (request, response) =>
      request.url === '/b' ? response.destroy() : response.end('{}');
    const file = recordingOf(Array.from({ length: 40 }, (_, i) => ({ url: i % 2 === 0 ? '/a' : '/b' })));
    const ran = await runDiff(file, [await serve(alike), await serve(alike), await serve(crashing)]);
    expect(ran.stdout).toMatch(/^GET \/b {2}status 200 → \w+ in 40 of 40 answers/m);
    // Each crash costs the candidate a connection: that takes time, which is another finding.
    expect(ran.json.findings.filter(({ kind }: { kind: string }) => kind !== 'latency')).toHaveLength(1);
    expect(ran.status).toBe(1);
  });
});
