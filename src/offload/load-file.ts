import { existsSync } from 'node:fs';
// Imports the namespace: bundles often declare a `createRequire` of their own.
import * as nodeModule from 'node:module';
import { fileURLToPath } from 'node:url';
import type { DynamicModule, Type } from '@nestjs/common';
import { MODULE_METADATA } from '../request/nest-metadata.js';
import { offloadError } from './offload.errors.js';

type Exports = Readonly<Record<string, unknown>>;
/** An `import()` that stays one: the build turns its own into `require()`. */
export type ImportFile = (href: string) => Promise<unknown>;

/** Returns the exports of a file, ESM or CommonJS. `importFile`: null on the main thread, which requires it. */
export async function loadExports(given: URL, importFile: ImportFile | null): Promise<Exports> {
  const file = findSource(given);
  const loaded = await (importFile === null ? requireFile(file) : importFile(file.href).catch(requireTypeScript(file)));
  const own = (typeof loaded === 'function' ? { default: loaded } : loaded) as Exports;
  // A CommonJS file's exports are the default export of its namespace.
  const inner = own['default'] as Exports | null | undefined;
  return typeof inner === 'object' && inner !== null && !isDynamicModule(inner) ? inner : own;
}

/** @throws PERF_ERR_OFFLOAD */
export function moduleIn(exported: Exports, file: string): Type | DynamicModule {
  const { default: byDefault } = exported;
  if (typeof byDefault === 'function' || isDynamicModule(byDefault)) return byDefault as Type | DynamicModule;
  const classes = Object.values(exported).filter((each) => typeof each === 'function');
  const modules = classes.filter((each) =>
    Object.values(MODULE_METADATA).some((key) => Reflect.hasMetadata(key, each)),
  );
  const [only, another] = new Set(modules.length === 0 ? classes : modules);
  if (only !== undefined && another === undefined) return only as Type;
  throw offloadError(
    `${file} must export one module class, or one as its default export; it has ${only === undefined ? 'none' : 'several'}. ` +
      '`module` of offload() is a file of its own with what the workers need, not the file that starts the application.',
  );
}

/** @throws PERF_ERR_OFFLOAD */
export function functionIn(exported: Exports, file: string): (input: unknown) => unknown {
  const { default: byDefault } = exported;
  if (typeof byDefault === 'function') return byDefault as (input: unknown) => unknown;
  throw offloadError(`The default export of ${file} must be a function of its input.`);
}

/** Returns `offload.module.ts` for `offload.module.js` where sources run. */
export function findSource(file: URL): URL {
  if (existsSync(file)) return file;
  const sources = ['.ts', '.mts', '.cts'].map((extension) => new URL(file.href.replace(/\.\w+$/, extension)));
  return sources.find((source) => existsSync(source)) ?? file;
}

export const isTypeScript = ({ pathname }: URL): boolean => /\.[cm]?tsx?$/.test(pathname);

function isDynamicModule(given: unknown): boolean {
  return typeof (given as { module?: unknown } | null | undefined)?.module === 'function';
}

/** Hooks that load TypeScript may be those of `require()` alone. */
const requireTypeScript = (file: URL) => (error: unknown) => {
  if (!isTypeScript(file)) throw error;
  return requireFile(file);
};

function requireFile(file: URL): unknown {
  const path = fileURLToPath(file);
  return nodeModule.createRequire(path)(path);
}
