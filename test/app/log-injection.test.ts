import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Get } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { loggerSink, SlowMs } from '../../src/index.js';
import { adapterOf, adapters } from '../fixtures/app.js';
import { closeApps, listeningApp, settled } from '../fixtures/build-app.js';
import { Lines } from '../fixtures/lines.js';

@Controller('slow')
class SlowController {
  @Get()
  @SlowMs(1)
  async slow() {
    await delay(20);
    return {};
  }
}

const HOSTILE = 'bob\r\n\u001b[31mLOG all is well\u2028\u009b31m\u202e';
// oxlint-disable-next-line no-control-regex
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202e]/;

afterEach(closeApps);

describe.each(adapters)('the log on %s', (adapter) => {
  it('shows what a user, a release and a sink are called on one line, as text', async () => {
    const lines = new Lines();
    const { url, ...built } = await listeningApp(adapterOf(adapter), {
      perf: {
        eventLoop: false,
        release: HOSTILE,
        unit: ({ query }) => ({ userId: (query as { user: string }).user }),
        sinks: [loggerSink({ format: 'object', unit: true }), { name: HOSTILE, publish: () => {} }],
      },
      metadata: { controllers: [SlowController] },
      nest: { logger: lines },
    });
    await fetch(`${url}/slow?user=${encodeURIComponent(HOSTILE)}`);
    await settled(built);
    const told = lines.all.filter((line) => line.includes('bob'));
    expect(told.map((line) => UNPRINTABLE.test(line))).toEqual([false, false]);
    expect(told[0]).toMatch(/^On: .* Release bob\\u000d\\u000a\\u001b\[31mLOG all is well\\u2028\\u009b31m\\u202e$/);
    expect(JSON.parse(told[1]!)).toMatchObject({
      event: 'slow_request',
      unit: { userId: 'bob\\u000d\\u000a\\u001b[31mLOG all is well\\u2028\\u009b31m\\u202e' },
    });
  });
});
