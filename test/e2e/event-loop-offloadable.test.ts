import { setImmediate as turn } from 'node:timers/promises';
import {
  type CanActivate,
  Controller,
  Get,
  Inject,
  Injectable,
  type MiddlewareConsumer,
  Module,
  Scope,
  UseGuards,
} from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Offload, offload } from '../../src/entries/offload.js';
import type { BlockRecord } from '../../src/index.js';
import { settle } from '../../src/entries/testing.js';
import { adapters, byTurns, startApp, type TestApp } from '../fixtures/app.js';
import { Load } from '../fixtures/load.js';

const compute = (): number => {
  let sum = 0;
  for (const endMs = performance.now() + 150; performance.now() < endMs;) sum += Math.sqrt(sum + 1);
  return sum;
};
const computeAt = (url: string, place: string): void => {
  if (url.startsWith(place)) compute();
};

@Injectable()
class Rows {
  hydrate(): string {
    return `${[1].map(() => compute()).length}`;
  }
}

@Injectable()
class Reports {
  constructor(@Inject(Rows) private readonly rows: Rows) {}

  async render(): Promise<string> {
    await turn();
    return this.rows.hydrate();
  }

  async #sum(): Promise<string> {
    return `${compute()}`;
  }

  async hidden(): Promise<string> {
    return this.#sum();
  }

  @Offload()
  async offloaded(): Promise<string> {
    return `${compute()}`;
  }
}

@Injectable({ scope: Scope.REQUEST })
class OfRequest {
  async render(): Promise<string> {
    return `${compute()}`;
  }
}

@Injectable()
class BusyGuard implements CanActivate {
  canActivate(context: { getArgByIndex(index: number): { url: string } }): boolean {
    computeAt(context.getArgByIndex(0).url, '/guarded');
    return true;
  }
}

@Injectable()
class BusyMiddleware {
  use(_request: unknown, _response: unknown, next: () => void): void {
    next();
  }
}

@Controller()
class ReportsController {
  constructor(
    @Inject(Reports) private readonly reports: Reports,
    @Inject(Rows) private readonly rows: Rows,
  ) {}

  @Get('rendered') async rendered(): Promise<string> {
    return this.reports.render();
  }
  @Get('hidden') async hidden(): Promise<string> {
    return this.reports.hidden();
  }
  @Get('offloaded') async offloaded(): Promise<string> {
    return this.reports.offloaded();
  }
  @Get('hydrated') hydrated(): string {
    return this.rows.hydrate();
  }
  @Get('own') own(): string {
    return `${compute()}`;
  }
  @Get('guarded') @UseGuards(BusyGuard) guarded(): string {
    return '';
  }
}

@Controller('scoped')
class ScopedController {
  constructor(@Inject(OfRequest) private readonly ofRequest: OfRequest) {}

  @Get() scoped(): Promise<string> {
    return this.ofRequest.render();
  }
}

@Module({ providers: [BusyMiddleware] })
class MiddlewareModule {
  configure(consumer: MiddlewareConsumer): void {
    consumer.apply(BusyMiddleware).forRoutes('{*rest}');
  }
}

describe.each(adapters)('a block on %s', (adapter) => {
  let test: TestApp;
  let load: Load;
  beforeAll(async () => {
    test = await startApp(adapter, {
      perf: {
        extensions: [offload({ module: new URL('./offload.module.js', import.meta.url), inline: true })],
      },
      metadata: {
        imports: [MiddlewareModule],
        controllers: [ReportsController, ScopedController],
        providers: [Rows, Reports, OfRequest, { provide: APP_GUARD, useClass: BusyGuard }],
      },
    });
    load = await Load.start(test.port);
  });
  afterAll(async () => {
    await load.close();
    await test.close();
  });

  /** Again, while the machine lets the watchdog see nothing. */
  async function blockOf(url: string): Promise<BlockRecord> {
    for (const startedMs = performance.now(); performance.now() - startedMs < 50_000;) {
      test.sink.records.length = 0;
      await load.get(url);
      await settle(test.app);
      const blocks = test.sink.records.filter((record) => record.kind === 'block');
      const seen = blocks.find(({ cause, location }) => cause === 'javascript' && location !== null);
      if (seen !== undefined) return seen;
    }
    throw new Error(`No block of ${url} was seen.`);
  }

  const cases: [what: string, url: string, offloadable?: string][] = [
    ['the provider’s method that was called, not a helper of it', '/rendered', 'Reports.render'],
    ['a public one', '/hidden', 'Reports.hidden'],
    ['none of which callers expect no promise', '/hydrated'],
    ['none where the handler itself computes', '/own'],
    ['none where a guard does', '/guarded'],
    ['none where no worker could have the instance', '/scoped'],
    ['none that has the decorator', '/offloaded'],
  ];
  it.each(byTurns(adapter, cases))('names for offload() %s', async (_what, url, offloadable) => {
    const record = await blockOf(url);
    expect(record.offloadable).toBe(offloadable);
    expect('offloadable' in record).toBe(offloadable !== undefined);
  });
});
