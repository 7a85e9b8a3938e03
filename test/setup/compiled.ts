import { execFileSync } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** Folder of the compiled test/fixtures, for tests that start a process of their own. */
    compiledFixtures: string;
  }
}

/** Compiles what tests start in a process of its own; unchecked, since the type check is a step of its own. */
export default function setup(project: TestProject): void {
  execFileSync('node_modules/.bin/tsc', ['-p', 'tsconfig.run.json', '--noCheck'], { stdio: 'inherit' });
  // The page's bundle is no source of the compiler: page.ts has made it before.
  copyFileSync('src/dashboard/page-assets.js', 'build/src/dashboard/page-assets.js');
  // The `nestjs-perf` of these files is what was compiled, too.
  const { name, version } = JSON.parse(readFileSync('package.json', 'utf8'));
  const exports = { '.': './src/index.js', './*': './src/entries/*.js' };
  writeFileSync('build/package.json', JSON.stringify({ name, version, type: 'module', exports }));
  project.provide('compiledFixtures', 'build/test/fixtures');
}
