import { Controller, Get, Injectable, Module, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { adapterOf, either } from '../fixtures/app.js';
import { closeApps, listeningApp, settled } from '../fixtures/build-app.js';

function spin(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}
/** A module that takes long to load keeps the loop for as long as it is evaluated. */
const slowImport = (): Promise<unknown> =>
  import(
    `data:text/javascript,const end = performance.now() + 300; while (performance.now() < end);export default ${Math.random()}`
  );

@Controller()
class QuickController {
  @Get()
  get() {
    return 'done';
  }
}

@Module({ providers: [{ provide: 'LOADED', useFactory: slowImport }] })
class LoadingModule {}
@Injectable()
class Initialised implements OnModuleInit {
  onModuleInit(): void {
    spin(300);
  }
}
@Injectable()
class Bootstrapped implements OnApplicationBootstrap {
  async onApplicationBootstrap(): Promise<void> {
    spin(300);
    // A turn in between, as with everything that connects somewhere.
    await new Promise((resolve) => setTimeout(resolve, 1));
    spin(300);
  }
}

afterEach(closeApps);

describe.each(either('express'))('a block while the application boots on %s', (adapter) => {
  it.each([
    ['an import that takes long', { imports: [LoadingModule] }],
    ['onModuleInit', { providers: [Initialised] }],
    ['onApplicationBootstrap', { providers: [Bootstrapped] }],
  ])('is not reported: %s', async (_name, metadata) => {
    const built = await listeningApp(adapterOf(adapter), {
      metadata: { ...metadata, controllers: [QuickController] },
    });
    const listensAt = Date.now();
    for (let i = 0; i < 3; i++) await (await fetch(built.url)).text();
    await settled(built);
    const blocks = built.sink.records.filter((record) => record.kind === 'block' && record.startedAt < listensAt);
    expect(blocks).toEqual([]);
  });

  it('is not reported between `init()` and `listen()`, where main.ts loads and connects', async ({ skip }) => {
    let waitedMs = 0;
    const built = await listeningApp(adapterOf(adapter), {
      metadata: { controllers: [QuickController] },
      beforeInit: async (app) => {
        await app.init();
        const fromMs = performance.now();
        await new Promise((resolve) => setTimeout(resolve, 1));
        spin(300);
        await new Promise((resolve) => setTimeout(resolve, 1));
        waitedMs = performance.now() - fromMs;
        spin(300);
      },
    });
    skip(
      waitedMs > 450,
      `the machine took ${Math.round(waitedMs)} ms for 300: the watch begins half a second after init()`,
    );
    const listensAt = Date.now();
    await (await fetch(built.url)).text();
    await settled(built);
    expect(built.sink.records.filter((record) => record.kind === 'block' && record.startedAt < listensAt)).toEqual([]);
  });
});
