import { defineConfig } from 'vitest/config';

/** For scripts/mutations.mjs, which runs it in a copy of the sources: every suite that needs no Redis. */
export default defineConfig({
  oxc: { decorator: { legacy: true, emitDecoratorMetadata: true } },
  test: {
    pool: 'forks',
    execArgv: ['--expose-gc'],
    include: ['test/{unit,app,nest,process}/**/*.test.ts'],
    globalSetup: ['test/setup/page.ts', 'test/setup/compiled.ts'],
  },
});
