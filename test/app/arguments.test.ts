import { afterEach, expect, it } from 'vitest';
import { PerfService } from '../../src/index.js';
import { adapterOf } from '../fixtures/app.js';
import { buildApp, closeApps } from '../fixtures/build-app.js';

afterEach(closeApps);

type Call = (perf: PerfService) => unknown;
const range = { from: 0, to: 1 };
/** As JavaScript may call it. */
const none = null as never;

it.each<[string, Call]>([
  ['`perf.users() options` must be an object, got `null`', (perf) => perf.users(none)],
  ['`perf.history() options` must be an object, got `null`', (perf) => perf.history(range, none)],
  ['`perf.compare() options` must be an object, got `"x"`', (perf) => perf.compare('day', 'x' as never)],
  ['`perf.timed() target` must be the name of an upstream', (perf) => perf.timed(none, () => 1)],
  ['`perf.timed() target` must be the name of an upstream', (perf) => perf.timed('', () => 1)],
  ['`perf.timed() work` must be a function that makes the call', (perf) => perf.timed('s3', none)],
])('PerfService says what is wrong: %s', async (message, call) => {
  for (const perf of [{}, { history: false, upstream: false, users: false }] as const) {
    const { app } = await buildApp(adapterOf('fastify'), { perf });
    await expect((async () => call(app.get(PerfService)))()).rejects.toThrow(`PERF_ERR_OPTION: ${message}`);
  }
});
