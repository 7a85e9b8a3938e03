import { createHash } from 'node:crypto';
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises';
import { Controller, Get, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BlockRecord } from '../../src/index.js';
import { settle } from '../../src/entries/testing.js';
import { either, startApp, type TestApp } from '../fixtures/app.js';

const BLOCK_MS = 150;
const compute = (): number => {
  let sum = 0;
  for (const endMs = performance.now() + BLOCK_MS; performance.now() < endMs;) sum += Math.sqrt(sum + 1);
  return sum;
};
const bytes = Buffer.alloc(60_000_000, 1);
/** The part of it that is used: its types are the browser's. */
const { WebAssembly } = globalThis as unknown as {
  WebAssembly: { instantiate(code: Uint8Array): Promise<{ instance: { exports: { run(count: number): void } } }> };
};
/** `(module (func (export "run") (param i32) (loop … (br_if …))))`: counts down to 0. */
const COUNTDOWN = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 1, 127, 0, 3, 2, 1, 0, 7, 7, 1, 3, 114, 117, 110, 0, 0, 10, 16, 1, 14, 0, 3,
  64, 32, 0, 65, 1, 107, 34, 0, 13, 0, 11, 11,
]);

/** Settles a list of jobs at once, in the context of whoever asked first. */
class Batch {
  private jobs: (() => void)[] | null = null;
  constructor(private readonly schedule: (run: () => void) => void) {}
  add(job: () => void): void {
    if (this.jobs === null) {
      this.jobs = [];
      const flush = (): void => {
        const jobs = this.jobs!;
        // A busy machine brings the second request late: alone it would block in its own context.
        if (jobs.length < 2) return this.schedule(flush);
        this.jobs = null;
        for (const run of jobs) run();
      };
      this.schedule(flush);
    }
    this.jobs.push(job);
  }
}
const batches: Readonly<Record<string, Batch>> = {
  timeout: new Batch((run) => setTimeout(run, 60)),
  immediate: new Batch((run) => setTimeout(() => setImmediate(run), 60)),
};

@Injectable()
class Ledger implements OnModuleInit, OnApplicationShutdown {
  due = false;
  private timer!: NodeJS.Timeout;
  onModuleInit(): void {
    this.timer = setInterval(() => this.close(), 20);
  }
  onApplicationShutdown(): void {
    clearInterval(this.timer);
  }
  /** As a cron job is called: by a timer that no request has made. */
  close(): void {
    if (!this.due) return;
    this.due = false;
    compute();
  }
  walk(levels: number): number {
    return levels === 0 ? compute() : this.walk(levels - 1) + 1;
  }
}

@Controller()
class CasesController {
  constructor(private readonly ledger: Ledger) {}

  @Get('batch/timeout/first') first(): string {
    batches['timeout']!.add(() => {});
    return 'answers at once';
  }
  @Get('batch/immediate/first') firstImmediate(): string {
    batches['immediate']!.add(() => {});
    return 'answers at once';
  }
  @Get('batch/timeout/second') async second(): Promise<string> {
    return this.batched('timeout');
  }
  @Get('batch/immediate/second') async secondImmediate(): Promise<string> {
    return this.batched('immediate');
  }
  private async batched(kind: string): Promise<string> {
    await new Promise<void>((resolve) => batches[kind]!.add(() => resolve(void compute())));
    await delay(5);
    return 'computed';
  }

  @Get('hash') hash(): string {
    const hash = createHash('sha256');
    for (const endMs = performance.now() + BLOCK_MS; performance.now() < endMs;) hash.update(bytes);
    return hash.digest('hex');
  }
  @Get('concat') concat(): number {
    let length = 0;
    for (const endMs = performance.now() + BLOCK_MS; performance.now() < endMs;)
      length += Buffer.concat([bytes, bytes]).length;
    return length;
  }
  @Get('wasm') async wasm(): Promise<string> {
    const { instance } = await WebAssembly.instantiate(COUNTDOWN);
    const { run } = instance.exports;
    for (const endMs = performance.now() + BLOCK_MS; performance.now() < endMs;) run(20_000_000);
    return 'counted';
  }
  @Get('recursion') async recursion(): Promise<number> {
    await turn();
    return this.ledger.walk(200);
  }
  @Get('twice') async twice(): Promise<string> {
    await turn();
    await (async () => void compute())();
    await Promise.resolve().then(compute);
    return 'computed twice';
  }
}

describe.each(either('express'))('a block on %s', (adapter) => {
  let test: TestApp;
  beforeAll(async () => {
    test = await startApp(adapter, { metadata: { controllers: [CasesController], providers: [Ledger] } });
    for (let i = 0; i < 10; i++) await (await fetch(`${test.url}/nothing`)).text();
  });
  afterAll(() => test.close());

  /** Blocks of code: again, while the machine does not let the process run. */
  async function blocksOf(make: () => Promise<unknown>, isNamed = false): Promise<BlockRecord[]> {
    for (const startedMs = performance.now(); performance.now() - startedMs < 50_000;) {
      test.sink.records.length = 0;
      await make();
      await settle(test.app);
      const blocks = test.sink.records.filter((record) => record.kind === 'block');
      // A sample that the machine has delayed proves nothing.
      const code = blocks.filter(
        ({ cause, durationMs, request }) =>
          cause === 'javascript' && durationMs > 0.6 * BLOCK_MS && (request !== null || !isNamed),
      );
      if (code.length > 0) return code;
    }
    throw new Error('no block of code was recorded');
  }
  const get = async (path: string): Promise<string> => (await fetch(`${test.url}/${path}`)).text();

  it.each(Object.keys(batches))(
    'in a batch by %s that outlives the request which began it is nobody’s, and nobody has waited for it',
    async (kind) => {
      const blocks = await blocksOf(async () => {
        await get(`batch/${kind}/first`);
        await get(`batch/${kind}/second`);
      });
      for (const block of blocks) {
        expect(block).toMatchObject({ request: null, suspect: null, delayed: [], curl: null });
        expect(block.location).toMatch(/^test\/measured\/event-loop-cases\.test\.ts:/);
      }
    },
  );

  it.each([
    ['native calls of Node’s', 'hash'],
    ['native calls that copy', 'concat'],
    ['WebAssembly', 'wasm'],
    ['200 calls of a recursion, after an await', 'recursion'],
    ['two parts that one request computes, the second as a promise’s reaction', 'twice'],
  ])('in %s has its request, line and method', async (_what, path) => {
    const blocks = await blocksOf(() => get(path), true);
    const block = blocks.find(({ location }) => location !== null)!;
    expect(block).toMatchObject({ request: { route: `/${path}` }, suspect: null });
    expect(block.location).toMatch(/^test\/measured\/event-loop-cases\.test\.ts:\d+:\d+$/);
    expect(block.samples).toBeGreaterThan(0);
    expect(block.method).toBe(path === 'recursion' ? 'Ledger.walk' : `CasesController.${path}`);
  });

  it('of a job has its line and method, and no request', async () => {
    const ledger = test.app.get(Ledger);
    const blocks = await blocksOf(async () => {
      ledger.due = true;
      while (ledger.due) await delay(20);
    });
    expect(blocks[0]).toMatchObject({ request: null, suspect: null, method: 'Ledger.close', curl: null });
    expect(blocks[0]!.location).toMatch(/^test\/measured\/event-loop-cases\.test\.ts:\d+:\d+$/);
  });

  it('of a job has its line and method where no request has come for long', async () => {
    const ledger = test.app.get(Ledger);
    const blocks = await blocksOf(async () => {
      await delay(2_000);
      ledger.due = true;
      while (ledger.due) await delay(20);
      await delay(600);
    });
    expect(blocks.map(({ method }) => method)).toContain('Ledger.close');
  });
});
