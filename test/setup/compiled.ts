import { execFileSync } from 'node:child_process';
import { copyFileSync } from 'node:fs';
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
  project.provide('compiledFixtures', 'build/test/fixtures');
}
