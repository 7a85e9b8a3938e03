import { Controller, Get, Injectable, Module, type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { MessagePattern, Transport, type MicroserviceOptions } from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PerfModule } from '../../src/index.js';
import { adapterOf, adapters } from '../fixtures/app.js';
import { Lines } from '../fixtures/lines.js';

@Controller()
class OrdersController {
  @MessagePattern('order')
  message() {
    return 'message';
  }
  @Get('order')
  order() {
    return 'order';
  }
}
@Module({ imports: [PerfModule.forRoot()], controllers: [OrdersController] })
class AppModule {}

@Injectable()
class BrokenProvider {
  constructor() {
    throw new Error('no configuration');
  }
}
@Module({ imports: [AppModule], providers: [BrokenProvider] })
class BrokenModule {}

const LINE = /not initialised 5 s after it was made.* call app\.init\(\) before `app\.startAllMicroservices\(\)`/;

describe.each(adapters)('an application on %s', (adapter) => {
  let lines: Lines;
  const open: { close(): Promise<void> }[] = [];
  const warnings = (): string[] => lines.all.filter((line) => LINE.test(line));
  // The check is the only timer set from here on that fires within an hour.
  beforeEach(() => {
    lines = new Lines();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  });
  afterEach(async () => {
    vi.useRealTimers();
    for (const app of open.splice(0)) await app.close();
  });
  async function hybrid(): Promise<INestApplication> {
    const app = await NestFactory.create(AppModule, adapterOf(adapter), { logger: lines });
    open.push(app);
    app.connectMicroservice<MicroserviceOptions>({ transport: Transport.TCP, options: { host: '127.0.0.1', port: 0 } });
    return app;
  }

  it('that only starts its microservices says within seconds what to call, once', async () => {
    const app = await hybrid();
    await app.startAllMicroservices();
    vi.advanceTimersByTime(4_900);
    expect(warnings()).toEqual([]);
    vi.advanceTimersByTime(3_600_000);
    expect(warnings()).toHaveLength(1);
  });

  it('that is initialised, listens or is closed in time says nothing', async () => {
    const [first, second, third] = [await hybrid(), await hybrid(), await hybrid()];
    await first.init();
    await first.startAllMicroservices();
    await second.listen(0, '127.0.0.1');
    await third.startAllMicroservices();
    await third.close();
    vi.advanceTimersByTime(3_600_000);
    expect(warnings()).toEqual([]);
  });

  it('that could not be made says nothing of it', async () => {
    const boot = NestFactory.create(BrokenModule, adapterOf(adapter), { logger: lines, abortOnError: false });
    await expect(boot).rejects.toThrow('no configuration');
    vi.advanceTimersByTime(3_600_000);
    expect(warnings()).toEqual([]);
  });
});

it('a testing module without a server says nothing of it', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const lines = new Lines();
  const compiled = await Test.createTestingModule({ imports: [AppModule] })
    .setLogger(lines)
    .compile();
  vi.advanceTimersByTime(3_600_000);
  vi.useRealTimers();
  await compiled.close();
  expect(lines.all.filter((line) => LINE.test(line))).toEqual([]);
});
