import type { DynamicModule, Type } from '@nestjs/common';
import { MODULE_METADATA } from '../../request/nest-metadata.js';
import { offloadError } from '../offload.errors.js';

type Exports = Readonly<Record<string, unknown>>;
type FileFunction = (input: unknown) => unknown;

/** Returns the exports of a file, ESM or CommonJS. */
export async function loadExports(file: URL, load: (href: string) => Promise<unknown>): Promise<Exports> {
  const loaded = await load(file.href);
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
export function functionIn(exported: Exports, file: string): FileFunction {
  const { default: byDefault } = exported;
  if (typeof byDefault === 'function') return byDefault as FileFunction;
  throw offloadError(`The default export of ${file} must be a function of its input.`);
}

function isDynamicModule(given: unknown): boolean {
  return typeof (given as { module?: unknown } | null | undefined)?.module === 'function';
}
