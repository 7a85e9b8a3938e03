import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { startRedis, type RunningRedis } from '../../scripts/redis.mjs';
import type { SoakReport, SoakSample } from '../fixtures/soak.server.js';
import { Traffic } from '../fixtures/soak/traffic.js';
import { disagreements } from '../fixtures/soak/verdict.js';

/** Under a minute in the long run; half an hour with PERF_SOAK_MINUTES=30. */
const MINUTES = Number(process.env['PERF_SOAK_MINUTES'] ?? 0.8);
const REQUESTS_PER_S = 60;
const TOTAL_MS = MINUTES * 60_000;
const SAMPLE_EVERY_MS = Math.min(15_000, TOTAL_MS / 12);
const FAULT_EVERY_MS = Math.min(60_000, TOTAL_MS / 4);
const DOWN_MS = Math.min(4_000, FAULT_EVERY_MS / 4);
/** Left out of the trend: compiling, pools that fill, and the two windows of the profile, which fill for ten minutes. */
const WARM_UP_MS = Math.max(20_000, Math.min(TOTAL_MS / 2, 12 * 60_000));

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

// Every feature and extension on; aborts, slow readers, errors, malformed bodies, blocks; sinks that throw, reject and stall;
// an upstream that breaks; a Redis that is killed with its data kept and started again, and one that stops answering, in turn.
describe.runIf(process.env['PERF_LONG'] !== undefined)('mixed load with faults in one process', () => {
  it(
    'leaves memory and handles flat, and every counter adds up',
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'nestjs-perf-soak-'));
      cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
      let redis = await startRedis({ own: true, appendOnly: true, dir: folder });
      cleanups.push(() => redis.stop());
      const script = join(inject('compiledFixtures'), 'soak.server.js');
      const server = fork(script, [String(redis.port), folder], { execArgv: [] });
      cleanups.push(() => server.kill('SIGKILL'));
      const { port } = await answerOf<{ port: number }>(server);

      const traffic = new Traffic(port, REQUESTS_PER_S);
      const samples: SoakSample[] = [];
      const startedMs = performance.now();
      for (let faults = 0; performance.now() - startedMs < TOTAL_MS;) {
        traffic.start();
        await delay(SAMPLE_EVERY_MS);
        if (performance.now() - startedMs > (faults + 0.5) * FAULT_EVERY_MS) {
          redis = await harm(redis, faults % 2 === 0, folder);
          faults += 1;
        }
        await traffic.stop();
        await lookAtThePage(port);
        samples.push(await ask<SoakSample>(server, 'sample'));
      }
      const ended = once(server, 'exit');
      const report = await ask<SoakReport>(server, { finish: traffic.accepted });
      const warm = samples.filter(({ atMs }) => atMs - samples[0]!.atMs > WARM_UP_MS - SAMPLE_EVERY_MS);
      const requests = Object.values(traffic.routes).reduce((sum, { sent }) => sum + sent, 0);
      const heapMb = [warm[0]!, warm.at(-1)!].map(({ heapUsed }) => (heapUsed / 1e6).toFixed(1));
      console.log(
        `${requests} requests, ${report.recorded} recorded, ${samples.length} samples, heap ${heapMb.join(' to ')} MB`,
      );
      expect(disagreements(warm, traffic, report)).toEqual([]);
      // By itself, after app.close().
      expect(await ended).toEqual([0, null]);
    },
    TOTAL_MS + 150_000, // What waits for Redis after the load.
  );
});

/** As an open page does; on a connection of its own. */
async function lookAtThePage(port: number): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/perf/data`, { headers: { connection: 'close' } });
  expect(response.status).toBe(200);
  await response.arrayBuffer();
}

async function answerOf<T>(server: ChildProcess): Promise<T> {
  const waiting = new AbortController();
  const { signal } = waiting;
  try {
    const [answer] = (await Promise.race([
      once(server, 'message', { signal }),
      once(server, 'exit', { signal }).then(([code]) =>
        Promise.reject(new Error(`the server ended with ${String(code)}`)),
      ),
    ])) as [T];
    return answer;
  } finally {
    waiting.abort();
  }
}

function ask<T>(server: ChildProcess, what: 'sample' | { finish: readonly number[] }): Promise<T> {
  server.send(what);
  return answerOf<T>(server);
}

/** Then as long again: a sample beside what has piled up would measure the backlog. */
async function harm(redis: RunningRedis, kill: boolean, dir: string): Promise<RunningRedis> {
  if (kill) await redis.stop({ keepData: true });
  else redis.child!.kill('SIGSTOP');
  await delay(DOWN_MS);
  const after = kill ? await startRedis({ own: true, appendOnly: true, port: redis.port, dir }) : redis;
  if (!kill) redis.child!.kill('SIGCONT');
  await delay(DOWN_MS);
  return after;
}
