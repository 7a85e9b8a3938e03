import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

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
const LONG = process.env['PERF_LONG'] !== undefined;
/** The folder of a suite says how it runs: CONTRIBUTING.md has the table. */
const SUITES = ['unit', 'app', 'nest', 'process', 'slow', 'measured', 'shipped'];
const PACKAGES = ['bullmq5', 'clients', 'manifests', 'matrix', 'nest11', 'node-versions', 'package'];
const MATERIAL = ['fixtures', 'mutations', 'setup', 'types'];
for (const folder of readdirSync('test')) {
  if ([...SUITES, ...PACKAGES, ...MATERIAL].includes(folder)) continue;
  if (!readdirSync(`test/${folder}`, { recursive: true }).some((path) => String(path).endsWith('.test.ts'))) continue;
  throw new Error(`No project runs test/${folder}: move its suites into test/{${SUITES.join(',')}}.`);
}

/** Far above what a test takes: a busy machine is no failure, and what hangs is still found. Waits end well inside it. */
const PATIENCE = { testTimeout: 60_000, hookTimeout: 120_000, expect: { poll: { timeout: 20_000 } } };
const fork = {
  pool: 'forks' as const,
  execArgv: ['--expose-gc'],
  // Bounds `it.concurrent`: those tests start processes.
  maxConcurrency: 3,
  ...PATIENCE,
};

interface Project {
  readonly name: string;
  readonly folders: readonly string[];
  readonly alias?: { find: RegExp; replacement: string }[];
  /** Every suite has a fresh process. */
  readonly isolate?: boolean;
  readonly [vitestOption: string]: unknown;
}

function defineProject({ name, folders, alias = [], isolate = false, ...options }: Project) {
  const include = folders.map((folder) => `test/${folder}/**/*.test.ts`);
  return { oxc, resolve: { alias }, test: { ...fork, name, include, isolate, ...options } };
}

/** Set by scripts/test.mjs for whole runs: each worker would take a second to load 300 sources. */
const COMPILED = process.env['PERF_COMPILED'] !== undefined;
const library = COMPILED
  ? [
      { find: /^nestjs-perf$/, replacement: resolve('build/src/index.js') },
      { find: /^nestjs-perf\/(.+)$/, replacement: resolve('build/src/entries/$1.js') },
      { find: /^(?:\.\.\/)+src\/(?!dashboard\/page\/)(.+\.js)$/, replacement: resolve('build/src/$1') },
    ]
  : [
      { find: /^nestjs-perf$/, replacement: resolve('src/index.ts') },
      { find: /^nestjs-perf\/(.+)$/, replacement: resolve('src/entries/$1.ts') },
    ];
/** The library, on Nest 12 as test/setup/nest.ts bundles it. */
const onNest12 = {
  alias: [
    ...library,
    { find: /^(rxjs|@nestjs\/[\w-]+)$/, replacement: resolve('build/node_modules/$1/index.js') },
    { find: /^(@nestjs\/core\/.+\.js)$/, replacement: resolve('build/node_modules/$1') },
  ],
  // Node itself loads what is compiled.
  server: { deps: { external: [/\/build\/src\//] } },
};
/** Vitest loads what is compiled, for its imports of Nest to be replaced. */
const onNest11 = {
  alias: [...(COMPILED ? library : []), ...aliasTo('test/nest11', OF_NEST)],
  env: { NEST_MAJOR: '11' },
};
const setupFiles = ['test/setup/closed-applications.ts', 'test/setup/without-event-loop.ts'];

/** BullMQ 5 with ioredis 5, on Nest 11: the long run installs them. */
const BULLMQ5 = 'test/bullmq5';
const OF_BULLMQ5 = [...OF_NEST.filter((name) => !/websockets|platform-ws/.test(name)), 'ioredis'];
const bullmq5 = existsSync(new URL(`./${BULLMQ5}/node_modules`, import.meta.url))
  ? [
      defineProject({
        name: 'bullmq5',
        folders: ['app/bullmq'],
        alias: aliasTo(BULLMQ5, OF_BULLMQ5),
        isolate: true,
        env: { NEST_MAJOR: '11', BULLMQ_MAJOR: '5' },
      }),
    ]
  : [];

/** Suites that last long first: begun last, they would end the run alone. Those of Nest 11 are the shortest of their run. */
const BY_LENGTH = ['process', 'shipped', 'slow', 'app', 'nest', 'unit'];
class LongestFirst extends BaseSequencer {
  override async sort(suites: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(suites);
    const rank = ({ moduleId }: TestSpecification): number =>
      BY_LENGTH.findIndex((folder) => moduleId.includes(`/test/${folder}/`));
    return sorted.sort((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  oxc,
  test: {
    sequence: { sequencer: LongestFirst },
    // More than there are cores, as suites also wait. A project's own number would outrank `--maxWorkers`.
    maxWorkers: availableParallelism() + 3,
    // Once for all projects.
    globalSetup: ['test/setup/page.ts', 'test/setup/redis.ts', 'test/setup/compiled.ts', 'test/setup/nest.ts'],
    coverage: {
      provider: 'v8',
      include: ['src/**'],
      // They run as text in a thread of their own, where V8 knows no file of them; process tests and the mutations cover them.
      // So does the page in a browser.
      exclude: ['src/event-loop/*.thread.ts', 'src/dashboard/page'],
      reporter: ['text', 'json-summary'],
      reportOnFailure: true,
      thresholds: { lines: 95 },
    },
    projects: [
      // One project: each has workers of its own, which load the library and Nest once more.
      defineProject({ name: 'nest12', folders: ['unit', 'app', 'nest'], setupFiles, ...onNest12 }),
      defineProject({
        name: 'nest11',
        folders: LONG ? ['app', 'nest', 'slow/clients'] : ['nest'],
        setupFiles,
        ...onNest11,
      }),
      defineProject({ name: 'process', folders: ['process'], isolate: true, ...onNest12 }),
      ...(LONG ? [defineProject({ name: 'nest11-process', folders: ['process'], isolate: true, ...onNest11 })] : []),
      defineProject({ name: 'slow', folders: ['slow'], setupFiles, ...onNest12 }),
      defineProject({ name: 'shipped', folders: ['shipped'], ...onNest12 }),
      // One suite after the other, after all others.
      defineProject({
        name: 'measured',
        folders: ['measured'],
        fileParallelism: false,
        sequence: { groupOrder: 1 },
      }),
      ...bullmq5,
    ],
  },
});
