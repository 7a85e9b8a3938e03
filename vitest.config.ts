import { createRequire } from 'node:module';
import { defineConfig } from 'vitest/config';

const oxc = { decorator: { legacy: true, emitDecoratorMetadata: true } };

/** Packages that must come from Nest 11's own tree when the suites run against the older major. */
const nest11 = createRequire(new URL('./test/nest11/package.json', import.meta.url));
const aliasToNest11 = [
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
].map((name) => ({ find: new RegExp(`^${name}$`), replacement: nest11.resolve(name) }));

const fork = { pool: 'forks' as const, execArgv: ['--expose-gc'] };

export default defineConfig({
  oxc,
  test: {
    coverage: { provider: 'v8', include: ['src/**'] },
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
    ],
  },
});
