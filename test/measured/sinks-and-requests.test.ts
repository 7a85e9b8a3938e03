import { Controller, Get } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import type { PerfSink } from '../../src/index.js';
import { either, startApp, type TestApp } from '../fixtures/app.js';

@Controller('ping')
class PingController {
  @Get()
  ping() {
    return 'pong';
  }
}

const bad: PerfSink[] = [
  { name: 'hangs', publish: () => new Promise(() => {}), flush: () => new Promise(() => {}) },
  {
    name: 'throws',
    publish: () => {
      throw new Error('no disk');
    },
  },
  { name: 'is slow', publish: () => new Promise((resolve) => setTimeout(resolve, 50).unref()) },
];

const timed = async ({ url }: TestApp): Promise<number> => {
  const before = performance.now();
  await (await fetch(`${url}/ping`)).text();
  return performance.now() - before;
};
const median = (values: number[]): number => values.sort((a, b) => a - b)[values.length >> 1]!;

describe.each(either('fastify'))('failing sinks on %s', (adapter) => {
  it('cost no request any time', async () => {
    const metadata = { controllers: [PingController] };
    const healthy = await startApp(adapter, { metadata });
    const harmed = await startApp(adapter, { metadata, perf: { sinks: bad, flushTimeoutMs: 50 } });
    const [a, b]: [number[], number[]] = [[], []];
    for (let i = 0; i < 150; i++) {
      a.push(await timed(healthy));
      b.push(await timed(harmed));
    }
    expect(await harmed.requests()).toHaveLength(150);
    await healthy.close();
    await harmed.close();
    // Interleaved, so a ratio: a sink on the request path would make it 50 ms against a millisecond.
    expect(median(b) / median(a)).toBeLessThan(3);
  });

  it('do not keep the application from closing within the deadline', async () => {
    const harmed = await startApp(adapter, {
      metadata: { controllers: [PingController] },
      perf: { sinks: bad, flushTimeoutMs: 100 },
    });
    await timed(harmed);
    const before = performance.now();
    await harmed.close();
    // Less than the five seconds that it would have by default.
    expect(performance.now() - before).toBeLessThan(4_000);
  });
});
