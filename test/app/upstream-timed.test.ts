import { setTimeout as delay } from 'node:timers/promises';
import { type CanActivate, Controller, Get, Inject, Injectable, UseGuards } from '@nestjs/common';
import { expect, it } from 'vitest';
import { PerfService } from '../../src/index.js';
import { adapters, startApp } from '../fixtures/app.js';

/** As Prisma's queries look from outside: one runs when somebody awaits it, and its extensions are in that. */
class LazyQuery implements PromiseLike<string> {
  constructor(private readonly run: () => Promise<string>) {}

  // oxlint-disable-next-line unicorn/no-thenable -- what is tested
  then<A, B>(
    done?: ((value: string) => A | PromiseLike<A>) | null,
    failed?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ) {
    // oxlint-disable-next-line promise/no-callback-in-promise -- they are its
    return this.run().then(done, failed);
  }
}

/** As a strategy of passport does it. */
@Injectable()
class CallbackGuard implements CanActivate {
  constructor(@Inject(PerfService) private readonly perf: PerfService) {}

  canActivate(): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.ask().then(() => resolve(true), reject);
    });
  }

  private async ask(): Promise<void> {
    await Promise.resolve();
    for (let i = 0; i < 5; i++) await this.perf.timed('postgres shop', () => delay(1));
  }
}

@Controller()
class LazyController {
  constructor(@Inject(PerfService) private readonly perf: PerfService) {}

  private find(waitMs: number): LazyQuery {
    return new LazyQuery(async () => this.perf.timed('postgres shop', () => delay(waitMs, 'row')));
  }

  @Get('one-by-one')
  async oneByOne() {
    const rows = [await this.find(1), await this.find(2), await this.find(3)];
    return { rows };
  }

  @Get('together')
  async together() {
    return { rows: await Promise.all([this.find(10), this.find(20)]) };
  }

  @Get('behind-a-callback')
  @UseGuards(CallbackGuard)
  behindACallback() {
    return {};
  }
}

it.each(adapters)('on %s, a call of a guard that wraps a callback is of its request', async (adapter) => {
  const running = await startApp(adapter, { metadata: { controllers: [LazyController] } });
  await (await fetch(`${running.url}/behind-a-callback`)).text();
  const records = await running.requests();
  await running.close();
  expect(records).toMatchObject([{ upstream: [{ target: 'postgres shop', calls: 5 }], time: { unplacedCalls: 0 } }]);
});

it.each(adapters)('on %s, a call that a lazy query makes is of the request that awaits it', async (adapter) => {
  const running = await startApp(adapter, { metadata: { controllers: [LazyController] } });
  const answers = [];
  for (const path of ['one-by-one', 'together']) answers.push(await (await fetch(`${running.url}/${path}`)).json());
  const records = await running.requests();
  await running.close();
  expect(answers).toEqual([{ rows: ['row', 'row', 'row'] }, { rows: ['row', 'row'] }]);
  expect(records).toMatchObject([
    { upstream: [{ target: 'postgres shop', calls: 3 }], time: { unplacedCalls: 0 } },
    { upstream: [{ target: 'postgres shop', calls: 2 }], time: { unplacedCalls: 0 } },
  ]);
});
