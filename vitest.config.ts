import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

const oxc = { decorator: { legacy: true, emitDecoratorMetadata: true } };

/** Packages that must come from a tree of their own when the suites run against older majors. */
const OF_NEST = [
  '@nestjs/common',
  '@nestjs/core',
  '@nestjs/testing',
  '@nestjs/platform-express',
  '@nestjs/platform-fastify',
  '@nestjs/microservices',
  '@nestjs/websockets',
  '@nestjs/platform-ws',
  '@nestjs/bullmq',
  'bullmq',
  'reflect-metadata',
  'rxjs',
];
function aliasTo(folder: string, names: readonly string[]): { find: RegExp; replacement: string }[] {
  const tree = createRequire(new URL(`./${folder}/package.json`, import.meta.url));
  return names.map((name) => ({ find: new RegExp(`^${name}$`), replacement: tree.resolve(name) }));
}
const SERVERS = ['test/e2e', 'test/nest'];

/** Suites of what Nest's version has no part in; those of the event loop run on Nest 11 by style of code (test/faults). */
const ALIKE_ON_ALL_NESTS = [
  'test/e2e/{agents,block-truth,boot-noise,closing,dashboard-browser,dashboard-hostile,dashboard-many-routes,dashboard-page,dashboard-text,dashboard-top,defer-outbox,event-loop*,experiment-effect,hostile-input,opentelemetry*,polluted-prototypes,prometheus,repeated-blocks,root-context,statsig,switchback,upstream-accuracy}.test.ts',
  'test/e2e/watch/*.test.ts',
  'test/e2e/resilience/{outcomes,redis*,retries}.test.ts',
  'test/e2e/cached-data/level2*.test.ts',
  'test/e2e/compression/{bodies,exchanges,safety,shared-rules,streams,wire}.test.ts',
];

/** Suites whose subject is ours, and whose way into Nest test/nest holds: the long form runs them on Nest 11 as well. */
const ON_NEST_11_WHEN_LONG = [
  'test/e2e/{dashboard,dashboard-answers,default-install,defer,defer-add-job,defer-board,defer-durable,defer-enqueue,defer-limits,defer-minified,defer-results,defer-shutdown,defer-spill,defer-store-shared,defer-two-services,defer-work,defer-worker}.test.ts',
  'test/e2e/{event-matrix,history,kill-switch,labels,latency,leaving,log,recording,recording-kept,request-path,resources}.test.ts',
  'test/e2e/{snapshot-endpoint,unit-and-release,upstream,upstream-findings,users}.test.ts',
  'test/e2e/compression/!(foreign-compressor|requests|shared-callers|shared-response|shared-response-boot|shared-response-hooks).test.ts',
];
const LONG = process.env['PERF_LONG'] !== undefined;

/** Suites of what a process was before or leaves behind, or that start processes of their own: each has a fresh one. */
const APART = [
  'test/e2e/{boot-noise,default-install,event-loop-off,kill-switch,opentelemetry,resources,root-context}.test.ts',
  'test/faults/{compression-memory,event-loop-ends,event-loop-exit,event-loop-hostile,event-loop-loader,event-loop-surroundings,event-loop-told,event-loop-worker,history-killed,many-apps}.test.ts',
  'test/unit/experiments/flat-memory.test.ts',
];
/** Suites that measure the event loop or the CPU: each has the machine to itself as well. */
const ALONE = [
  'test/e2e/{block-truth,closing,event-loop,event-loop-cases,event-loop-record,event-loop-secrets,event-loop-shared,experiment-effect,measured-blocks,opentelemetry-spans,repeated-blocks,switchback,upstream-accuracy}.test.ts',
  'test/faults/{event-loop-attribution,event-loop-machine,event-loop-styles,resilience-outages,loop-shares,real-cgroups,sinks-and-requests,soak,throttled-loop,offload/loop-spared}.test.ts',
  'test/unit/{bench/*,event-loop/event-loop,examples/examples,history/{cost,turns}}.test.ts',
  'test/load/{diff,ramp}.test.ts',
];

/** Far above what a test takes: a busy machine is no failure, and what hangs is still found. Waits end well inside it. */
const PATIENCE = { testTimeout: 60_000, hookTimeout: 120_000, expect: { poll: { timeout: 20_000 } } };
const fork = {
  pool: 'forks' as const,
  execArgv: ['--expose-gc'],
  // Three more than there are cores: suites wait as often as they compute.
  maxWorkers: availableParallelism() + 3,
  // Of tests that say so: they start processes.
  maxConcurrency: 3,
  ...PATIENCE,
};

interface Suites {
  readonly name: string;
  readonly folders: readonly string[];
  readonly exclude?: readonly string[];
  readonly alias?: { find: RegExp; replacement: string }[];
  readonly env?: Record<string, string>;
}

/** Three projects: many suites in one process, a process for each suite, and then one suite after the other. */
function projectsOf({ name, folders, exclude = [], alias = [], env = {} }: Suites) {
  const within = (globs: readonly string[]): string[] =>
    globs.filter((glob) => folders.some((folder) => glob.startsWith(`${folder}/`)));
  const common = { ...fork, env };
  const all = folders.map((folder) => `${folder}/**/*.test.ts`);
  const beside = {
    ...common,
    name,
    include: all,
    exclude: [...exclude, ...APART, ...ALONE],
    isolate: false,
    setupFiles: folders === SERVERS ? ['test/setup/closed-applications.ts'] : [],
  };
  const apart = { ...common, name: `${name}-apart`, include: within(APART), exclude: [...exclude] };
  const alone = {
    ...common,
    name: `${name}-alone`,
    include: within(ALONE),
    exclude: [...exclude],
    fileParallelism: false,
    isolate: false,
    // After all others.
    sequence: { groupOrder: 1 },
  };
  return [beside, apart, alone].map((test) => ({ oxc, resolve: { alias }, test }));
}

/** BullMQ 5 with ioredis 5, on Nest 11: the long run installs them. */
const BULLMQ5 = 'test/bullmq5';
const OF_BULLMQ5 = [...OF_NEST.filter((name) => !/websockets|platform-ws/.test(name)), 'ioredis'];
const bullmq5 = existsSync(new URL(`./${BULLMQ5}/node_modules`, import.meta.url))
  ? [
      {
        oxc,
        resolve: { alias: aliasTo(BULLMQ5, OF_BULLMQ5) },
        test: {
          ...fork,
          name: 'bullmq5',
          include: [
            'test/e2e/defer-{add-job,durable,two-services}.test.ts',
            'test/contract/durable-store.test.ts',
            'test/faults/defer-redis-worker.test.ts',
          ],
          env: { NEST_MAJOR: '11', BULLMQ_MAJOR: '5' },
        },
      },
    ]
  : [];

export default defineConfig({
  oxc,
  test: {
    // Once for all projects.
    globalSetup: ['test/setup/page.ts', 'test/setup/redis.ts', 'test/setup/compiled.ts'],
    coverage: {
      provider: 'v8',
      include: ['src/**'],
      // Runs as text in a thread of its own, where V8 knows no file of it; process tests and the mutations cover it.
      // So does the page in a browser.
      exclude: ['src/event-loop/sampler.thread.ts', 'src/dashboard/page'],
      reporter: ['text', 'json-summary'],
      reportOnFailure: true,
      thresholds: { lines: 95 },
    },
    projects: [
      ...projectsOf({
        name: 'unit',
        folders: ['test/unit', 'test/contract', 'test/faults', 'test/load'],
      }),
      ...projectsOf({ name: 'nest12', folders: SERVERS }),
      ...projectsOf({
        name: 'nest11',
        folders: SERVERS,
        exclude: LONG ? ALIKE_ON_ALL_NESTS : [...ALIKE_ON_ALL_NESTS, ...ON_NEST_11_WHEN_LONG],
        alias: aliasTo('test/nest11', OF_NEST),
        env: { NEST_MAJOR: '11' },
      }),
      ...bullmq5,
    ],
  },
});
