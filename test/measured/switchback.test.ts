import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Get } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { Experiment, Experiments, type GateClient, staticGates, Variant } from '../../src/index.js';
import { adapters, startApp } from '../fixtures/app.js';

function burn(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

@Controller()
class WorkController {
  @Get('cpu')
  cpu(@Variant('lean') variant: string) {
    burn(variant === 'on' ? 1 : 6);
    return variant;
  }

  @Get('block')
  @Experiment('quiet')
  block(@Variant('quiet') variant: string) {
    if (variant === 'off') burn(120);
    return variant;
  }
}

const metadata = { controllers: [WorkController] };
const LONG = process.env['PERF_LONG'] !== undefined;

describe.each(adapters)('on %s', (adapter) => {
  // Eight pairs of slices of 100 ms each, more where the machine's own noise hides the difference.
  it.runIf(LONG || adapter === 'fastify')('a switchback answers for CPU and latency of one process', async () => {
    const running = await startApp(adapter, {
      metadata,
      perf: {
        experiments: {
          gates: staticGates({}),
          switchback: { gate: 'lean', sliceMs: 100, washoutMs: 10 },
        },
      },
    });
    const experiments = running.app.get(Experiments, { strict: false });
    const slices = (): number => experiments.totals().slices.length;
    const seen = (): boolean =>
      (['cpu', 'latency'] as const).every((metric) => {
        const { comparison } = experiments.report('lean', { metric });
        return comparison !== null && comparison.ci[1] < 0;
      });
    const deadlineMs = performance.now() + 30_000;
    for (let next = 16; slices() < next && performance.now() < deadlineMs;) {
      await (await fetch(`${running.url}/cpu`)).text();
      await delay(1);
      if (slices() >= next && !seen()) next += 8;
    }
    const records = await running.requests();
    const [cpu, latency, memory] = (['cpu', 'latency', 'memory'] as const).map((metric) =>
      experiments.report('lean', { metric }),
    );
    const totals = experiments.totals();
    await running.close();
    expect(new Set(records.map(({ variants }) => variants?.['lean']))).toEqual(new Set(['on', 'off']));
    for (const report of [cpu!, latency!]) {
      expect(report.comparison!.ci[1]).toBeLessThan(0);
      expect(report.text).toMatch(/^lean: (cpu|latency) -\d+\.\d % \(95 % CI .*\), p .*, \d+ \/ \d+ slices, MDE /);
    }
    expect(memory!.comparison!.control.mean).toBeGreaterThan(10e6);
    // Requests are compared by slice, so none may be compared by unit too.
    expect(totals.gates).toEqual([]);
    const pairs = new Map<string, boolean[]>();
    for (const { pair, on } of totals.slices) pairs.set(pair, [...(pairs.get(pair) ?? []), on]);
    for (const variants of [...pairs.values()].slice(0, 8))
      expect(variants.toSorted((a, b) => Number(a) - Number(b))).toEqual([false, true]);
  });

  // Requests that block the loop for 120 ms each, until one is proven: on a busy machine the verdict may be that the process
  // was not given its CPU.
  it.runIf(LONG || adapter === 'express')(
    'time that a variant is proven to have blocked the loop is compared as the records say',
    { timeout: 120_000 },
    async () => {
      const gates: GateClient = { check: (_gate, { userId }) => ({ on: Number(userId) % 2 === 0 }), share: () => 0.5 };
      const unit = (request: unknown) => ({
        userId: (request as { headers: Record<string, string> }).headers['x-user']!,
      });
      const running = await startApp(adapter, { metadata, perf: { experiments: { gates, unit } } });
      const experiments = running.app.get(Experiments, { strict: false });
      let records = await running.requests();
      for (let user = 0; user < 60 && !(user >= 8 && records.some(({ blockedMs }) => blockedMs > 60)); user++) {
        await (await fetch(`${running.url}/block`, { headers: { 'x-user': String(user) } })).text();
        records = await running.requests();
      }
      const { comparison } = experiments.report('quiet', { metric: 'blocked', route: 'GET /block' });
      await running.close();
      const off = records.filter(({ variants }) => variants?.['quiet'] === 'off');
      const blockedMs = off.reduce((sum, record) => sum + record.blockedMs, 0);
      expect(blockedMs).toBeGreaterThan(60);
      expect(comparison!.control.count).toBe(off.length);
      expect(comparison!.control.mean).toBeCloseTo(blockedMs / off.length, 9);
      expect(comparison!.treatment.mean).toBeLessThan(30);
    },
  );
});
