import { EventEmitter, once } from 'node:events';
import { stat } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { Controller, Get, type NestInterceptor, UseInterceptors } from '@nestjs/common';
import { map } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import { type BlockRecord, loggerSink, type RequestRecord } from '../../src/index.js';
import { adapterOf, adapters, byTurns } from '../fixtures/app.js';
import { type BuiltApp, closeApps, listeningApp, settled } from '../fixtures/build-app.js';
import { Lines } from '../fixtures/lines.js';
import { Load } from '../fixtures/load.js';

function spin(ms = 130): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}
/** Made outside of any request, as connection pools are: what it calls runs in no request's context. */
const pool = new EventEmitter();
pool.on('ask', () => setImmediate(() => pool.emit('turn')));
pool.on('turn', () => {
  spin();
  pool.emit('answer');
});
const mapping: NestInterceptor = { intercept: (_context, next) => next.handle().pipe(map((value: unknown) => value)) };

@Controller()
class LoneController {
  /** As Nest's generator writes it: no async function, and an interceptor before it. */
  @Get('generated')
  @UseInterceptors(mapping)
  generated() {
    spin();
    return 'done';
  }
  @Get('callback')
  callback() {
    return new Promise((resolve) => {
      stat('.', () => {
        spin();
        resolve('done');
      });
    });
  }
  @Get('pool')
  async pool() {
    const answered = once(pool, 'answer');
    pool.emit('ask');
    await answered;
    return 'done';
  }
}

let load: Load | null = null;
afterEach(async () => {
  await load?.close();
  load = null;
  await closeApps();
});

/** A lone request's block and record: the first attempt at which the machine has added no other block. */
async function loneBlock(built: BuiltApp, path: string): Promise<{ block: BlockRecord; request: RequestRecord }> {
  for (let attempt = 0; attempt < 12; attempt++) {
    built.sink.records.length = 0;
    await load!.get(path);
    await settled(built);
    const blocks = built.sink.records.filter((record) => record.kind === 'block');
    const requests = built.sink.records.filter((record) => record.kind === 'request');
    const [block, request] = [blocks[0], requests[0]];
    if (blocks.length !== 1 || block === undefined || request === undefined) continue;
    if (block.durationMs > 100 && block.cause !== 'not-scheduled') return { block, request };
  }
  throw new Error('no block was recorded by itself');
}

describe.each(adapters)('the only request there was on %s', (adapter) => {
  const cases = ['/generated', '/callback', '/pool', '/middleware'].flatMap((path) =>
    [true, false].map((stack) => ({ path, stack })),
  );
  it.each(byTurns(adapter, cases))(
    'is never told to have waited for its own block, with `stack: $stack`: $path',
    async ({ path, stack }) => {
      const lines = new Lines();
      const built = await listeningApp(adapterOf(adapter), {
        metadata: { controllers: [LoneController] },
        nest: { logger: lines },
        perf: { eventLoop: { stack }, sinks: [loggerSink()] },
        beforeInit: (app) => {
          app.use('/middleware', (_request: object, response: ServerResponse) => {
            setImmediate(() => {
              spin();
              response.end('done');
            });
          });
        },
      });
      load = await Load.start(built.port);
      const { block, request } = await loneBlock(built, path);
      expect(request.delayedMs).toBe(0);
      expect(block.delayed).toEqual([]);
      if (!stack) expect([block.location, block.stack, block.method]).toEqual([null, [], null]);
      if (block.request !== null) expect(block.request.id).toBe(request.id);
      // Nobody has proven that: what is unknown is said as unknown.
      expect(lines.all.filter((line) => /code of no request/i.test(line))).toEqual([]);
    },
  );
});
