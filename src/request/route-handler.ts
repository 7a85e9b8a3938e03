import type { RouteHandler } from './routes.js';
import { PATH_METADATA } from './nest-metadata.js';

export const SKIP_METADATA = 'perf:skip';
export const SLOW_METADATA = 'perf:slow-ms';

export const servesRoute = (method: object): boolean => Reflect.hasMetadata(PATH_METADATA, method);

/** Reads the decorators of a method; those of the method win over those of its class. */
export function readHandler(controller: { readonly name: string }, method: object, methodName: string): RouteHandler {
  const read = (key: string): unknown => Reflect.getMetadata(key, method) ?? Reflect.getMetadata(key, controller);
  return {
    name: `${controller.name}.${methodName}`,
    skipped: read(SKIP_METADATA) === true,
    slowMs: (read(SLOW_METADATA) as number | undefined) ?? null,
  };
}
