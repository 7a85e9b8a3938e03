import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { PerfService } from '../../src/index.js';
import { adapters, startApp } from '../fixtures/app.js';

/** What every larger application does at its start: it loads, connects and compiles, without rest. */
@Injectable()
class SlowStart implements OnApplicationBootstrap {
  onApplicationBootstrap() {
    for (const fromMs = performance.now(); performance.now() - fromMs < 1_500;);
  }
}

describe.each(adapters)('health right after the start, %s', (adapter) => {
  it('does not take the boot for load, so that a first readiness probe is answered with ready', async () => {
    const { app, close } = await startApp(adapter, { metadata: { providers: [SlowStart] } });
    const { reasons } = app.get(PerfService).health();
    expect(reasons.filter((reason) => reason.startsWith('event loop'))).toEqual([]);
    await close();
  });
});
