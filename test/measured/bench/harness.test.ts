import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  commandLine,
  medianWithInterval,
  runInterleaved,
  startLoad,
  startServer,
  type BenchmarkServer,
  type Load,
} from '../../../bench/harness/index.mjs';

const file = fileURLToPath(new URL('../../fixtures/bench-server.mjs', import.meta.url));

describe('the load generator', () => {
  let server: BenchmarkServer;
  let load: Load;
  beforeAll(async () => {
    [server, load] = await Promise.all([startServer({ name: 'plain', file }), startLoad()]);
  });
  afterAll(async () => {
    await load.stop();
    await server.stop();
  });
  const burst = (path: string, method = 'GET') =>
    load.burst({ port: server.port, connections: 10, requests: 200, request: { path, method } });

  it('sends exactly the requests of a burst and reads every body to its end', async () => {
    expect(await burst('/')).toMatchObject({ requests: 200, statuses: { 200: 200 }, bodyBytes: 2_000 });
    expect(await burst('/chunks')).toMatchObject({ requests: 200, bodyBytes: 200 * 100_003 });
    expect(await burst('/empty')).toMatchObject({ statuses: { 204: 200 }, bodyBytes: 0 });
    expect(await burst('/', 'HEAD')).toMatchObject({ statuses: { 200: 200 }, bodyBytes: 0 });
  });

  it('refuses to report a burst in which requests failed', async () => {
    await expect(burst('/missing')).rejects.toThrow('"404":200');
  });

  it('counts latency from when a request was due, so that a stall is not hidden by the requests it held up', async () => {
    const { port } = server;
    const options = { port, connections: 2, ratePerS: 500, durationMs: 600, request: { path: '/stall-once' } };
    const { due, requests, latencyMs } = await load.rate(options);
    expect({ due, requests }).toEqual({ due: 300, requests: 300 });
    // 200 ms of 600: a third of the requests were due while the server stood still, a tenth of them waited over 100 ms.
    expect(latencyMs.p90).toBeGreaterThan(100);
  });
});

// Starts up to four sets of real processes: a second or two, more on a busy machine.
describe('interleaved runs', () => {
  const flags = {
    rounds: 4,
    generations: 2,
    burst: 50,
    warmup: 50,
    connections: 10,
    rateMs: 100,
    ratePhases: 2,
    maxControlError: 0.1,
  };
  const silent = { log: () => {} };
  const burning = (name: string, steps: number) => ({ name, file, args: [String(steps)] });

  // A machine that stands still for once proves nothing; a wrong ratio is wrong each time.
  it.runIf(process.env['PERF_LONG'] !== undefined)(
    'find the variant that costs more, and give each its rounds and its latency at one rate',
    { timeout: 120_000, retry: 2 },
    async () => {
      const variants = [burning('base', 1e5), burning('control', 1e5), burning('double', 2e5)];
      const { generations } = await runInterleaved(variants, flags, { ...silent, atOneRate: true });
      const rounds = generations.map(({ bursts }) =>
        bursts['double']!.map(({ cpuUs }, i) => cpuUs / bursts['base']![i]!.cpuUs),
      );
      expect(rounds.map(({ length }) => length)).toEqual([2, 2]);
      const { median } = medianWithInterval(rounds);
      expect(median).toBeGreaterThan(1.5);
      expect(median).toBeLessThan(2.5);
      for (const { latency } of generations) {
        const phases = latency['double']!;
        expect(phases.map(({ ratePerS }) => ratePerS)).toEqual(latency['base']!.map(({ ratePerS }) => ratePerS));
        for (const { p50Ms, p99Ms } of phases) expect(p99Ms).toBeGreaterThanOrEqual(p50Ms);
        expect(phases).toHaveLength(flags.ratePhases);
      }
    },
  );

  it('discard what their control does not confirm, and give up rather than report it', async () => {
    const variants = [burning('base', 1e5), burning('control', 2e5)];
    const run = runInterleaved(variants, { ...flags, rounds: 1, generations: 1 }, silent);
    await expect(run).rejects.toThrow('4 of 4 runs had a control off by > 10 %');
  }, 300_000);
});

describe('the interval of a median', () => {
  const apart = [
    [1, 1.01, 0.99, 1],
    [1.1, 1.11, 1.09, 1.1],
    [1.2, 1.21, 1.19, 1.2],
  ];

  it('is as wide as the processes differ, however well the rounds of each agree', () => {
    const { median, low, high } = medianWithInterval(apart);
    expect(median).toBeCloseTo(1.1, 2);
    expect(low).toBeLessThan(1.02);
    expect(high).toBeGreaterThan(1.18);
  });

  it('is narrow when processes and rounds agree, and the same each time', () => {
    const agreeing = apart.map((rounds) => rounds.map((_, i) => 1 + i / 1_000));
    const { low, high } = medianWithInterval(agreeing);
    expect(high - low).toBeLessThan(0.004);
    expect(medianWithInterval(apart)).toEqual(medianWithInterval(apart));
  });
});

describe('the command that a result names', () => {
  it.each([
    [[], 'npm run bench -- overhead'],
    [
      ['--rounds', '12', '--generations=2', '--only', 'a,b'],
      'npm run bench -- overhead --rounds 12 --generations=2 --only a,b',
    ],
    [['--node-flags', '--expose-gc --x'], "npm run bench -- overhead --node-flags '--expose-gc --x'"],
    [['--only', "o'clock"], "npm run bench -- overhead --only 'o'\\''clock'"],
  ])('has the flags that were given: %j', (flags, command) => {
    expect(commandLine(['node', 'bench/overhead.mjs', ...flags])).toBe(command);
  });
});
