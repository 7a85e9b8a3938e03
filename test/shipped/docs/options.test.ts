import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { it } from 'vitest';

it('docs/options.md is what `scripts/options-page.mjs` writes of the built types', () => {
  if (!existsSync('dist/index.d.ts')) execFileSync('node', ['scripts/build.mjs']);
  // Fails with what to run.
  execFileSync('node', ['scripts/options-page.mjs', '--check']);
}, 240_000);
