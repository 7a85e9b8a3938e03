// ESM and CommonJS from one source. `module-sync` in package.json makes both resolve to one class identity.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { run } from './install.mjs';

rmSync('dist', { recursive: true, force: true });
run('node_modules/.bin/tsc', ['-p', 'tsconfig.build.json']);
run('node_modules/.bin/tsc', ['-p', 'tsconfig.cjs.json']);
mkdirSync('dist/cjs', { recursive: true });
writeFileSync('dist/cjs/package.json', '{"type":"commonjs"}\n');
