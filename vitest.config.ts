import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
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
const aliasToNest11 = aliasTo('test/nest11', OF_NEST);

/** Far above what a test takes: a busy machine is no failure, and what hangs is still found. Waits end well inside it. */
const PATIENCE = { testTimeout: 60_000, hookTimeout: 120_000, expect: { poll: { timeout: 20_000 } } };
const fork = { pool: 'forks' as const, execArgv: ['--expose-gc'], ...PATIENCE };

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
          include: ['test/e2e/defer-durable.test.ts', 'test/contract/{durable-store,bulk-queue}.test.ts'],
          globalSetup: ['test/setup/redis.ts'],
          env: { NEST_MAJOR: '11', BULLMQ_MAJOR: '5' },
        },
      },
    ]
  : [];

export default defineConfig({
  oxc,
  test: {
    coverage: {
      provider: 'v8',
      include: ['src/**'],
      // Runs as text in a thread of its own, where V8 knows no file of it; process tests and the mutations cover it.
      exclude: ['src/event-loop/watchdog.worker.ts'],
      reporter: ['text', 'json-summary'],
      reportOnFailure: true,
      thresholds: { lines: 95 },
    },
    projects: [
      {
        oxc,
        test: {
          ...fork,
          name: 'unit',
          include: ['test/unit/**/*.test.ts', 'test/contract/**/*.test.ts', 'test/faults/**/*.test.ts'],
          globalSetup: ['test/setup/redis.ts', 'test/setup/compiled.ts'],
        },
      },
      {
        oxc,
        test: {
          ...fork,
          name: 'nest12',
          include: ['test/e2e/**/*.test.ts'],
          globalSetup: ['test/setup/redis.ts'],
        },
      },
      {
        oxc,
        resolve: { alias: aliasToNest11 },
        test: {
          ...fork,
          name: 'nest11',
          include: ['test/e2e/**/*.test.ts'],
          globalSetup: ['test/setup/redis.ts'],
          env: { NEST_MAJOR: '11' },
        },
      },
      ...bullmq5,
    ],
  },
});
