import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import type { TestProject } from 'vitest/node';
import { hashSources } from '../../scripts/hash-sources.mjs';
import { writeThreadPrograms } from '../../scripts/thread-programs.mjs';

declare module 'vitest' {
  interface ProvidedContext {
    /** Folder of the compiled test/fixtures, for tests that start a process of their own. */
    compiledFixtures: string;
  }
}

const SOURCES = 'build/src';
/** Written last: an interrupted run leaves none. */
const MADE_OF = 'build/made-of';

/** Compiles what tests start in a process of its own; unchecked, since the type check is a step of its own. */
export default async function setup(project: TestProject): Promise<void> {
  const folders = ['src', 'examples', 'test/fixtures', 'test/setup', 'packages/load/src', 'scripts'];
  const madeOf = hashSources(folders, ['tsconfig.json', 'tsconfig.run.json', 'package.json']);
  // Another run in this folder may use them.
  if (!existsSync(MADE_OF) || readFileSync(MADE_OF, 'utf8') !== madeOf) {
    for (const path of [MADE_OF, SOURCES]) rmSync(path, { recursive: true, force: true });
    await compile();
    writeFileSync(MADE_OF, madeOf);
  }
  project.provide('compiledFixtures', 'build/test/fixtures');
}

async function compile(): Promise<void> {
  execFileSync('node_modules/.bin/tsc', ['-p', 'tsconfig.run.json', '--noCheck'], { stdio: 'inherit' });
  // The page's bundle is no source of the compiler: page.ts has made it before.
  copyFileSync('src/dashboard/page-assets.js', `${SOURCES}/dashboard/page-assets.js`);
  await writeThreadPrograms(SOURCES);
  await bundleSources();
}

/** Leaves of each compiled source its exports: 300 files of their own would take every process and thread 0.2 s to load. */
async function bundleSources(): Promise<void> {
  const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.js'));
  const bundle = await rolldown({
    input: Object.fromEntries(files.map((file) => [file.slice(0, -'.js'.length), join(SOURCES, file)])),
    external: /^[^./]/,
    platform: 'node',
    treeshake: false,
  });
  await bundle.write({
    dir: SOURCES,
    // The event loop knows the library's own frames by such a name.
    chunkFileNames: 'shared/nestjs-perf.[name].js',
    keepNames: true,
    codeSplitting: {
      groups: [
        // Threads of `offload()` load only this part.
        { name: 'serve', test: /offload.worker.serve\.js$/, priority: 1 },
        { name: 'index', test: /build.src.index\.js$/ },
      ],
    },
  });
}
