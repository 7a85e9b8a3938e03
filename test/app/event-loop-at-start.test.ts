import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { expect, it } from 'vitest';
import { PerfService } from '../../src/index.js';
import { startApp } from '../fixtures/app.js';
import { withEventLoop } from '../fixtures/usual.js';

withEventLoop();

/** What every larger application does at its start: it loads, connects and compiles, without rest. */
@Injectable()
class SlowStart implements OnApplicationBootstrap {
  onApplicationBootstrap() {
    for (const fromMs = performance.now(); performance.now() - fromMs < 1_500;);
  }
}

it('the boot is not taken for load, so that a first readiness probe is answered with ready', async () => {
  const { app, close } = await startApp('express', { metadata: { providers: [SlowStart] } });
  const { reasons } = app.get(PerfService).health();
  expect(reasons.filter((reason) => reason.startsWith('event loop'))).toEqual([]);
  await close();
});
