import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { freePort } from '../../scripts/redis.mjs';
import { BlockersProcess } from '../fixtures/blockers-process.js';
import { nodeBinaries } from '../fixtures/node-versions.js';
import { until } from '../fixtures/until.js';

const LONG = process.env['PERF_LONG'] !== undefined;
/** The short run has JavaScript, and a native call that lets no sample in. */
const KINDS = LONG ? ['loop', 'regex', 'sort', 'wait', 'exec', 'pbkdf2'] : ['loop', 'exec'];
const STUCK_MS = LONG ? 3_000 : 1_200;
const MOST_MS = 50;
const EVERY_MS = 25;

const ask = async (url: string): Promise<number> => {
  const startedMs = performance.now();
  await (await fetch(url)).arrayBuffer();
  return performance.now() - startedMs;
};

describe.each(nodeBinaries())('/live of a stuck process on $name', ({ execPath }) => {
  it.for(KINDS.map((kind): [string, number] => [kind, LONG && kind === 'loop' ? 60_000 : STUCK_MS]))(
    'answers within 50 ms: %s, for %i ms',
    { timeout: 150_000 },
    async ([kind, stuckMs], { skip }) => {
      const port = await freePort();
      const server = await BlockersProcess.start({ execPath, perf: { eventLoop: { port } } });
      // A server that nothing blocks, asked in turn: it tells what the machine itself takes.
      const program = `require('http').createServer((q, r) => r.end('{}')).listen(0, '127.0.0.1', function () { console.log(this.address().port) })`;
      const control = spawn(execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
      try {
        const [controlPort] = (await once(control.stdout.setEncoding('utf8'), 'data')) as [string];
        const live = `http://127.0.0.1:${port}/live`;
        await until('the witness listens', () => ask(live).then(Boolean, () => false));
        void fetch(`http://127.0.0.1:${server.port}/later/${kind}?ms=${2 * stuckMs}`).catch(() => {});
        await until(
          'it is stuck',
          async () => ((await (await fetch(live)).json()) as { blocked: unknown }).blocked !== null,
        );
        const [tookMs, controlMs]: [number[], number[]] = [[], []];
        for (const endMs = performance.now() + stuckMs; performance.now() < endMs; await delay(EVERY_MS)) {
          tookMs.push(await ask(live));
          controlMs.push(await ask(`http://127.0.0.1:${controlPort.trim()}/`));
        }
        const [most, most0] = [Math.max(...tookMs), Math.max(...controlMs)];
        console.log(`${kind}: ${tookMs.length} answers within ${most.toFixed(1)} ms (control ${most0.toFixed(1)} ms)`);
        skip(most0 > MOST_MS / 2, `a server that nothing blocks took ${most0.toFixed(0)} ms`);
        expect(most).toBeLessThan(MOST_MS);
      } finally {
        control.kill('SIGKILL');
        server.kill();
      }
    },
  );
});
