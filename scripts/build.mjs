// ESM and CommonJS from one source. `module-sync` in package.json makes both resolve to one class identity.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { run } from './install.mjs';

rmSync('dist', { recursive: true, force: true });
run('node_modules/.bin/tsc', ['-p', 'tsconfig.build.json']);
run('node_modules/.bin/tsc', ['-p', 'tsconfig.cjs.json']);
mkdirSync('dist/cjs', { recursive: true });
writeFileSync('dist/cjs/package.json', '{"type":"commonjs"}\n');

// The watchdog's program as a literal, which no bundler, minifier or coverage tool rewrites: see watchdog-source.ts.
const compiled = 'dist/event-loop/watchdog-source.js';
const { watchdogSource } = await import(pathToFileURL(compiled));
const text = JSON.stringify(watchdogSource());
writeFileSync(compiled, `export const watchdogSource = () => ${text};\n`);
writeFileSync('dist/cjs/event-loop/watchdog-source.js', `exports.watchdogSource = () => ${text};\n`);
