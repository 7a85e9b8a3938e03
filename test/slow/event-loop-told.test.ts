import { afterEach, describe, expect, it } from 'vitest';
import { either } from '../fixtures/app.js';
import { BlockersProcess, markedLines, type BlockersOptions } from '../fixtures/blockers-process.js';
import { Load } from '../fixtures/load.js';
import { nodeBinaries } from '../fixtures/node-versions.js';
import { until } from '../fixtures/until.js';

const DEADLINE_MS = 40_000;

describe.each(nodeBinaries())('on $name the sampler of a process', ({ execPath }) => {
  let server: BlockersProcess;
  let load: Load;
  const start = async (options: BlockersOptions): Promise<void> => {
    server = await BlockersProcess.start({ execPath, ...options });
    load = await Load.start(server.port);
    for (let i = 0; i < 10; i++) await load.get('/quick');
  };
  afterEach(async () => {
    server.kill();
    await load.close();
  });

  it.each(either('express'))('names a request that never returns on stderr, while it hangs, on %s', async (adapter) => {
    await start({ adapter });
    const hanging = load.get('/later/loop?ms=600000&token=hunter2').catch((error: unknown) => error);
    const told =
      /\[Perf\] GET \/later\/:kind \(BlockersController\.later\) has blocked the event loop for \d+ ms and still does at test\/fixtures\/blockers\.controller\.ts:(\d+):\d+ \(spin\)/;
    await until('the hang to be told of', () => told.test(server.stderr), DEADLINE_MS);
    expect(Number(told.exec(server.stderr)![1])).toBe(markedLines.get('loop'));
    expect(server.stderr).not.toContain('hunter2');
    server.kill();
    await hanging;
  });

  it('does not name the request of an earlier block for a later one', async () => {
    await start({});
    const said = (): string[] => server.stderr.split('\n').filter((line) => line.includes(' and still '));
    // Where the machine holds the sampler up, a block is reported without its request.
    await until(
      'a block told of with its request',
      async () => {
        await load.get('/later/loop?ms=1400');
        return said().some((line) => line.includes('/later/:kind'));
      },
      DEADLINE_MS,
    );
    await server.settle();
    const before = said().length;
    await until(
      'the native block to be told of',
      async () => {
        server.tell('native-block');
        await server.settle();
        return said().length > before;
      },
      DEADLINE_MS,
    );
    expect(said().at(-1)).toContain('[Perf] The event loop has been blocked for');
  }, 150_000);

  it('may crash: the process goes on serving, and ends by itself', async () => {
    await start({ env: { TEST_BREAK_SAMPLER: '1' } });
    expect((await load.get('/later/loop?ms=120')).status).toBe(200);
    await server.settle();
    expect(server.blocks.some(({ durationMs, request }) => durationMs > 100 && request === null)).toBe(true);
    expect(server.output).toContain('the event-loop sampler ended');
    server.tell('close');
    expect(await server.ended(DEADLINE_MS)).toEqual({ code: 0, signal: null });
  });
});
