// An application whose route blocks the event loop, under Jest: in its process, in a child process, or in a thread, where
// nobody can be blamed because the inspector would show another thread's stack. check/jest.cjs says which.
import 'reflect-metadata';
import { isMainThread } from 'node:worker_threads';
import { Controller, Get, type INestApplication, type LoggerService } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { PerfModule, PerfService, type BlockRecord } from 'nestjs-perf';
import { memorySink, settle } from 'nestjs-perf/testing';

const BLOCK_MS = 300;
/** Jest's five seconds are too few on a slow machine. */
const LIMIT_MS = 60_000;

@Controller('reports')
class ReportsController {
  @Get()
  async render(): Promise<string> {
    await Promise.resolve();
    const until = performance.now() + BLOCK_MS;
    while (performance.now() < until);
    return 'rendered';
  }
}

describe('an application that blocks, under test', () => {
  const sink = memorySink();
  const lines: string[] = [];
  const keep = (line: unknown): void => void lines.push(String(line));
  const logger: LoggerService = { log: keep, warn: keep, error: keep };
  let app: INestApplication;

  beforeAll(async () => {
    const testing = await Test.createTestingModule({
      imports: [PerfModule.forRoot({ sinks: [sink] })],
      controllers: [ReportsController],
    }).compile();
    app = testing.createNestApplication({ logger });
    await app.listen(0, '127.0.0.1');
  }, LIMIT_MS);
  afterAll(() => app.close(), LIMIT_MS);

  it('runs where this check means it to run, from code as it means it to be', () => {
    expect(isMainThread).toBe(process.env['IN_A_THREAD'] === undefined);
    expect(/\bcov_\w+\(\)/.test(PerfService.toString())).toBe(process.env['INSTRUMENTED'] !== undefined);
  });

  it(
    'has its blocks measured, and traced where that can be done',
    async () => {
      // A busy machine may keep the sampler from a sample; no machine keeps it from it each time.
      let blocks: BlockRecord[] = [];
      for (let i = 0; i < 20 && !blocks.some(({ request }) => request !== null); i++) {
        expect((await fetch(`${await app.getUrl()}/reports`)).status).toBe(200);
        await settle(app);
        blocks = sink.records.filter((record): record is BlockRecord => record.kind === 'block');
        if (!isMainThread) break;
      }
      expect(blocks.some(({ durationMs }) => durationMs >= BLOCK_MS * 0.9)).toBe(true);
      const traced = blocks.filter(({ request, suspect }) => request !== null || suspect !== null);
      if (isMainThread) {
        expect(traced.map(({ request }) => request?.handler)).toContain('ReportsController.render');
        expect(traced.map(({ location }) => location).join()).toContain('blocked.spec.ts');
      } else {
        expect(traced).toEqual([]);
        expect(lines.filter((line) => line.includes('the application runs in a worker thread'))).toHaveLength(1);
      }
      expect(lines.filter((line) => line.includes('sampler ended'))).toEqual([]);
    },
    LIMIT_MS,
  );
});
