import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { freePort } from '../../scripts/redis.mjs';
import { BlockersProcess, markedLines, type BlockersOptions } from '../fixtures/blockers-process.js';
import { nodeBinaries } from '../fixtures/node-versions.js';
import { until } from '../fixtures/until.js';

interface Live {
  beatAgeMs: number;
  blocked: { ms: number; route: string | null; method: string | null; location: string | null } | null;
}

/** Longer than any machine needs for what is looked at meanwhile; the process is killed after it. */
const STUCK_MS = 120_000;
const DEADLINE_MS = 50_000;
const LONG = process.env['PERF_LONG'] !== undefined;
/** A process each: the short run has JavaScript and a wait, and two native calls. */
const SAMPLED = LONG ? ['loop', 'regex', 'sort', 'wait'] : ['loop', 'wait'];
const NATIVE = LONG ? ['exec', 'pbkdf2', 'prepared'] : ['exec', 'prepared'];

describe.each(nodeBinaries())('the witness on $name', { timeout: 180_000 }, ({ execPath }) => {
  let server: BlockersProcess;
  let port: number;
  const start = async (eventLoop: object = {}, options: BlockersOptions = {}): Promise<void> => {
    port = await freePort();
    server = await BlockersProcess.start({ execPath, perf: { eventLoop: { port, ...eventLoop } }, ...options });
    await until('the witness listens', () => live().then(Boolean, () => false));
  };
  const get = (path: string): Promise<Response> => fetch(`http://127.0.0.1:${port}${path}`);
  const live = async (): Promise<Live & { status: number }> => {
    const response = await get('/live');
    return { status: response.status, ...((await response.json()) as Live) };
  };
  const stuck = (path: string): void =>
    void fetch(`http://127.0.0.1:${server.port}${path}?ms=${STUCK_MS}`).catch(() => {});
  const liveWhen = async (holds: (live: Live) => boolean): Promise<Live & { status: number }> => {
    let seen!: Live & { status: number };
    await until('the witness says so', async () => holds((seen = await live())), DEADLINE_MS);
    return seen;
  };
  afterEach(() => server.kill());

  it('says that a loop which turns is not blocked', async () => {
    await start();
    const { status, blocked } = await liveWhen((seen) => seen.blocked === null);
    expect({ status, blocked }).toEqual({ status: 200, blocked: null });
    expect((await get('/')).status).toBe(404);
  });

  it.each(SAMPLED)('names route, method and line of a %s that is still running', async (kind) => {
    await start();
    stuck(`/later/${kind}`);
    const line = `blockers.controller.ts:${markedLines.get(kind)}`;
    // A busy machine may have blocked the loop before it.
    const { status, blocked } = await liveWhen((seen) => seen.blocked?.location?.includes(line) === true);
    expect(status).toBe(200);
    expect(blocked).toMatchObject({ route: 'GET /later/:kind', method: 'BlockersController.later' });
    expect(blocked!.ms).toBeGreaterThanOrEqual(50);
  });

  it.each(NATIVE)('answers during a native call that lets no sample in: %s', async (kind) => {
    await start();
    stuck(`/later/${kind}`);
    const line = `blockers.controller.ts:${markedLines.get(kind)}`;
    // Samples of what ran before the call count for half of the block at most.
    const isBlocked = ({ blocked }: Live): boolean =>
      blocked !== null && blocked.ms > 300 && (blocked.location ?? line).includes(line);
    expect((await liveWhen(isBlocked)).status).toBe(200);
  });

  it('answers 503 once the loop has not turned for `wedgedMs`, and 200 as soon as it turns again', async () => {
    await start({ wedgedMs: 400 });
    const blocked = fetch(`http://127.0.0.1:${server.port}/later/loop?ms=2000`);
    const wedged = await liveWhen((seen) => (seen as { status: number } & Live).status === 503);
    expect(wedged.beatAgeMs).toBeGreaterThanOrEqual(400);
    await blocked;
    const { status } = await liveWhen((seen) => seen.blocked === null);
    expect(status).toBe(200);
  });

  it('serves the last metrics and the age of the beat while the loop is stuck', async () => {
    await start({}, { prometheus: true });
    await fetch(`http://127.0.0.1:${server.port}/quick`);
    await until('a scrape', async () => (await (await get('/metrics')).text()).includes('route="/quick"'));
    stuck('/later/loop');
    // A busy machine may have blocked the loop before it.
    await liveWhen((seen) => seen.blocked?.route === 'GET /later/:kind');
    const response = await get('/metrics');
    const text = await response.text();
    expect(response.headers.get('content-type')).toContain('text/plain');
    expect(text).toContain('route="/quick"');
    expect(Number(/^perf_eventloop_beat_age_seconds (\S+)$/m.exec(text)?.[1])).toBeGreaterThan(0.05);
  });

  it('ends clients that do not send their request', async () => {
    await start();
    const client = connect(port, '127.0.0.1', () => client.write('GET /live HTTP/1.1\r\n'));
    client.resume();
    await once(client, 'close');
    expect((await live()).status).toBe(200);
  });

  it('is started again when its thread has died, and blocks have their request again', async () => {
    await start({}, { env: { TEST_BREAK_SAMPLER: '1' } });
    const loop = (): Promise<unknown> => fetch(`http://127.0.0.1:${server.port}/later/loop?ms=300`);
    await loop();
    await until('the warning', () => server.output.includes('Probes get no answer there'));
    expect(server.output).toContain('until it starts again in 5 s');
    await until('the witness listens', () => live().then(Boolean, () => false));
    const isNamed = async (): Promise<boolean> => {
      await loop();
      return server.blocks.some(({ request }) => request !== null);
    };
    await until('a block with its request', isNamed, DEADLINE_MS);
  });

  it('leaves no thread behind when the application closes', async () => {
    await start();
    server.tell('close');
    expect(await server.ended(STUCK_MS)).toEqual({ code: 0, signal: null });
  });

  it('says so where its port is taken, and the application serves all the same', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    port = (taken.address() as AddressInfo).port;
    server = await BlockersProcess.start({ execPath, perf: { eventLoop: { port } } });
    await until('the warning', () => server.output.includes('is not served'));
    expect(server.output).toContain('EADDRINUSE');
    expect((await fetch(`http://127.0.0.1:${server.port}/quick`)).status).toBe(200);
    taken.close();
    await until('the witness listens', () => live().then(Boolean, () => false));
  });
});
