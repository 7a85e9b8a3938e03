import { beforeAll, describe, expect, it } from 'vitest';
import { Examples } from '../fixtures/examples.js';

const LONG = process.env['PERF_LONG'] !== undefined;
/** Their figures are compared; test/slow/examples runs the others. */
const COMPARING = ['history', 'ab-test', 'resilience', 'slow-upstream'];
/** Run for 15 s at the least; `.ci/run` starts the demo too. */
const LASTING = ['demo', 'going-live'];

// Not in milliseconds: starting a Node process each takes seconds, many on a slow machine.
describe('examples that compare figures', { timeout: 450_000 }, () => {
  const examples = new Examples('.cache/run/measured');
  beforeAll(() => examples.copy(), 300_000);

  it.concurrent('examples/ab-test asks the SDK of Statsig with --statsig', async ({ expect }) => {
    const { status, stdout } = await examples.run('ab-test', '--statsig');
    expect(status).toBe(0);
    expect(stdout).toMatch(/^skip_async_cleanup on GET .*: latency -\d/m);
    expect(stdout).toMatch(/^ {2}Statsig was told of \d+ exposures\.$/m);
  });

  it.runIf(LONG)('examples/slow-upstream tells our own slowness from theirs', async () => {
    const { status, stdout } = await examples.run('slow-upstream', '--us');
    expect(status).toBe(0);
    expect(stdout).toMatch(/^Is it us or them\? Us: /m);
    expect(stdout).toMatch(/^For whom\? acme: /m);
  });

  // At a time: most of each is spent waiting. How many is `maxConcurrency` of vitest.config.ts.
  it.concurrent.for([...COMPARING, ...(LONG ? LASTING : [])])(
    'examples/%s runs with one command, and ends',
    (name, context) => examples.check(name, context),
  );
});
