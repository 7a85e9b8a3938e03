import { defineConfig } from 'vitest/config';

const oxc = { decorator: { legacy: true, emitDecoratorMetadata: true } };
const fork = { pool: 'forks' as const, execArgv: ['--expose-gc'] };

/** For scripts/mutations.mjs, which runs it in a copy of the sources: every suite that needs no Redis. */
export default defineConfig({
  test: {
    globalSetup: ['test/setup/page.ts', 'test/setup/compiled.ts'],
    projects: [
      {
        oxc,
        test: {
          ...fork,
          name: 'shared',
          include: ['test/{unit,app,nest}/**/*.test.ts'],
          setupFiles: ['test/setup/without-event-loop.ts'],
        },
      },
      { oxc, test: { ...fork, name: 'process', include: ['test/{process,slow/processes}/**/*.test.ts'] } },
    ],
  },
});
