import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { PerfError } from '../core/perf.error.js';

export const isTypeScript = (path: string): boolean => /\.[cm]?tsx?$/.test(path);
/** Loaders of TypeScript with Nest's decorators for a worker; Node itself strips types, and has no decorators. */
const LOADER = String.raw`[\s=](?:(?!\s-).)*\b(?:tsx|ts-node|swc|esbuild-register|sucrase|oxc-node|jiti)\b`;
const REQUIRED = new RegExp(String.raw`(?:^|\s)(?:-r|--require)${LOADER}`);
const IMPORTED = new RegExp(String.raw`(?:^|\s)(?:--import|--loader|--experimental-loader)${LOADER}`);
/** Whether only `require()` loads TypeScript in a worker. */
export const isRequired = (loaders: string): boolean => REQUIRED.test(loaders) && !IMPORTED.test(loaders);
const isLoaded = (loaders: string): boolean => REQUIRED.test(loaders) || IMPORTED.test(loaders);
export const loadersOf = (execArgv: readonly string[] = process.execArgv): string =>
  [...execArgv, process.env['NODE_OPTIONS'] ?? ''].join(' ');

/**
 * Why a worker cannot load the module's file, in words; null when it can, or should try.
 * @throws PERF_ERR_OPTION when there is none
 */
export function obstacleTo(file: URL, execArgv: readonly string[] = process.execArgv): string | null {
  const path = fileURLToPath(sourceOf(file));
  if (!existsSync(path)) throw new PerfError('PERF_ERR_OPTION', `\`offload.module\` "${path}" does not exist.`);
  return !isTypeScript(path) || isLoaded(loadersOf(execArgv)) ? null : `a worker cannot load the TypeScript of ${path}`;
}

/** Returns `offload.module.ts` for `offload.module.js` where sources run. */
export function sourceOf(file: URL): URL {
  if (existsSync(file)) return file;
  const sources = ['.ts', '.mts', '.cts'].map((extension) => new URL(file.href.replace(/\.\w+$/, extension)));
  return sources.find((source) => existsSync(source)) ?? file;
}
