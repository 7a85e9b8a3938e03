import { execFile, execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { beforeAll, describe, expect, inject, it } from 'vitest';

/** Apart from `build`, where Nest is the bundles of test/setup/nest.ts. */
const COMPILED = '.cache/run/examples';
const LONG = process.env['PERF_LONG'] !== undefined;
/** What a run must say, beside ending by itself with success. */
const mustSay: Readonly<Record<string, readonly RegExp[]>> = {
  demo: [
    /^1\. Event-loop blocks$[^]*^2\. Requests per route$[^]*^3\. Container CPU and memory$[^]*^4\. Compression$[^]*^5\. Deferred work$[^]*^6\. Experiment$/m,
    /^ {2}█+ \d+ of \d+ requests answered$/m,
    /^Go on with\n {2}npm i nestjs-perf .*\n {2}npm test /m,
  ],
  'quick-start': [/Mapped \{\/orders\/:id, GET\} route/],
  'deferred-work': [
    /answered 201 after \d+ ms/,
    /audit: request-1 answered 201\n(.*\n)*receipt for order-1 sent to ada@example.org/,
    /accepted: 4,\n {2}completed: 4,/,
  ],
  'durable-work': [
    // Anything may stand between: a slow machine's blocks are logged too.
    /accepted 3, stored 3; now the worker starts\n(?:(?:.*\n)*?process worker: receipt for order-\d, attempt 1, request request-order-\d\n){3}/,
  ],
  prometheus: [
    /^http_server_request_duration_seconds_count\{http_request_method="GET",http_route="\/flights\/:callsign",http_response_status_code="200"\} 2$/m,
    /http_route="",http_response_status_code="404"\} 1$/m,
  ],
  opentelemetry: [/name: 'http\.server\.request\.duration'/, /'http\.route': '\/flights\/:callsign'/, /count: 2/],
  'going-live': [
    /^Recorded 400 requests in traffic-.*\.ndjson\.gz\.$/m,
    /^GET \/flights\/:callsign {2}shape: altitudeFeet has another type in \d+ of \d+ answers/m,
    /^GET \/flights\/:callsign {2}latency \+\d+ % /m,
    /^ramp: holds \d/m,
  ],
  'ab-test': [/^skip_async_cleanup on GET \/v1\/initialize: latency -\d+\.\d % \(95 % CI .*\), p /m],
  'cached-data': [
    /^as it was: p50 .* a request calls Redis 13\.0\d times, the database 1\.00 times$/m,
    /^cached   : p50 .* a request calls Redis \d\.\d\d times, the database 0\.\d\d times$/m,
    /^The database is away: as it was, 0 of 100 requests are answered; cached, 100 of 100\.$/m,
  ],
  'slow-upstream': [
    /^P95 of GET \/insights rose from \d+ ms to \d+ ms\.$/m,
    /^Is it us or them\? Them: the slowest requests take \d+ ms, and for \d+ ms of it \(\d+ %\) we only wait for others\.$/m,
    /^Who are they\? http ghe\.acme\.com: \d+ ms of each of them\.$/m,
    /^For whom\? acme: \d+ % of the route's time, with 20 % of its requests\.$/m,
  ],
  resilience: [
    /^GitHub stalls for two seconds\n {2}as it was: .*\n {2}limited {2}: \d+ pages, .* \d+ with stars; .*\n {2}Requests that waited at the end of it: \d\d+ as it was, \d+ limited$/m,
    /^The limits: \d+ calls ended at their deadline of 200 ms, then it opened \(\d+ times in all\) and refused [1-9]\d* at once; stars were back \d+ ms after GitHub was\.$/m,
  ],
  history: [
    /^1\.0\.0 has run for 80 minutes: /m,
    /^1\.1\.0 has run for \d+ minutes:\n {2}worse since .* UTC: GET \/orders \d+ → \d+ ms; .*release 1\.1\.0 since .* Against the release before\.$/m,
    /^ {2}.*GET \/orders: slower, mean \d+ → \d+ ms, .* % of it is (?:postgres shop|waiting for the event loop)/m,
  ],
  hydration: [
    /^on the main thread: the event loop stood still for \d+ ms, the answer took \d+ ms\nrows to a worker: .*\nall in a worker: /m,
    /^in workers: up to \d+ ms; cloning took the event loop up to \d+\.\d ms a call$/m,
  ],
  statsig: [
    /api_request .*"status":200,/,
    /api_request .*"status":404,/,
    /pod_latency .*"count":2,/,
    /api_request .*"status":"2xx".*"count":2,"sum":/,
  ],
};
/** What makes a run short. */
const flags: Readonly<Record<string, readonly string[]>> = {
  demo: ['--seconds', '1'],
  'going-live': ['--seconds', '2'],
};

interface Run {
  status: number | NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}
/** Runs one, however it ends. */
const run = (...args: string[]): Promise<Run> =>
  new Promise((resolve) => {
    const options = { timeout: 400_000, env: { ...process.env, REDIS_URL: inject('redisUrl') } };
    const child = execFile('node', args, options, (_error, stdout, stderr) =>
      resolve({ status: child.exitCode ?? child.signalCode, stdout, stderr }),
    );
  });

const examples = readdirSync('examples').filter((name) => existsSync(`examples/${name}/main.ts`));
/** Run for 15 s at the least; `.ci/run` starts the demo too. */
const isLong = (name: string): boolean => ['demo', 'going-live'].includes(name);

// Not in milliseconds: starting a Node process each takes seconds, many on a slow machine.
describe('examples', { timeout: 450_000 }, () => {
  beforeAll(() => {
    // They import the package by its name, so they run on what is built, and on Nest as it is installed.
    if (!existsSync('dist/index.js')) execFileSync('node', ['scripts/build.mjs']);
    execFileSync('node_modules/.bin/tsc', ['-p', 'tsconfig.run.json', '--noCheck', '--outDir', '.cache/run']);
  }, 300_000);

  it('examples/ab-test asks the SDK of Statsig with --statsig', async () => {
    const { status, stdout } = await run(`${COMPILED}/ab-test/main.js`, '--statsig');
    expect(status).toBe(0);
    expect(stdout).toMatch(/^skip_async_cleanup on GET .*: latency -\d/m);
    expect(stdout).toMatch(/^ {2}Statsig was told of \d+ exposures\.$/m);
  });

  it.runIf(LONG)('examples/slow-upstream tells our own slowness from theirs', async () => {
    const { status, stdout } = await run(`${COMPILED}/slow-upstream/main.js`, '--us');
    expect(status).toBe(0);
    expect(stdout).toMatch(/^Is it us or them\? Us: /m);
    expect(stdout).toMatch(/^For whom\? acme: /m);
  });

  // At a time: most of each is spent waiting. How many is `maxConcurrency` of vitest.config.ts.
  it.concurrent.for(examples.filter((name) => LONG || !isLong(name)))(
    'examples/%s runs with one command, and ends',
    async (name, { expect, skip }) => {
      // The control: this process is idle meanwhile, so what delays its timers is the machine.
      const control = monitorEventLoopDelay({ resolution: 10 });
      control.enable();
      const { status, stdout, stderr } = await run(`${COMPILED}/${name}/main.js`, ...(flags[name] ?? []));
      // The sampler writes there of a loop that a slow machine has kept for over a second.
      expect(stderr.replaceAll(/^\[Perf\] .*\n/gm, '')).toBe('');
      expect(status).toBe(0);
      control.disable();
      const delayedMs = control.percentile(99) / 1e6 - 10;
      const missing = (mustSay[name] ?? [/\S/]).filter((pattern) => !pattern.test(stdout));
      skip(
        missing.length > 0 && delayedMs > 10,
        `the machine delayed an idle process by ${delayedMs.toFixed(0)} ms (p99)`,
      );
      for (const pattern of missing) expect(stdout).toMatch(pattern);
    },
  );
});
