import { extname } from 'node:path';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { PerfError } from '../core/perf.error.js';

export const isTypeScript = (path: string): boolean => /\.[cm]?tsx?$/.test(path);
/** What makes a worker load TypeScript with Nest's decorators; Node itself strips types, and has no decorators. */
export const LOADER = /\b(?:tsx|ts-node|swc|esbuild-register|sucrase|oxc-node|jiti)\b/;
export const loadersOf = (execArgv: readonly string[] = process.execArgv): string =>
  [...execArgv, process.env['NODE_OPTIONS'] ?? ''].join(' ');

/**
 * Why a worker cannot load the module's file, in words; null when it can, or should try.
 * @throws PERF_ERR_OPTION when there is none
 */
export function obstacleTo(file: URL, execArgv: readonly string[] = process.execArgv): string | null {
  const path = fileURLToPath(file);
  const source = isTypeScript(path) ? path : sourceBeside(path);
  if (!existsSync(source ?? path)) {
    throw new PerfError('PERF_ERR_OPTION', `\`offload.module\` "${path}" does not exist.`);
  }
  return source === null || LOADER.test(loadersOf(execArgv))
    ? null
    : `a worker cannot load the TypeScript of ${source}`;
}

/** A test runs sources: `offload.module.js` is `offload.module.ts` there. */
function sourceBeside(path: string): string | null {
  if (existsSync(path)) return null;
  const stem = path.slice(0, path.length - extname(path).length);
  return ['.ts', '.mts', '.cts'].map((extension) => stem + extension).find((source) => existsSync(source)) ?? null;
}
