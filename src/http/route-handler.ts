import type { RouteHandler } from '../core/route.js';
import { PATH_METADATA } from './nest-metadata.js';

export const SKIP_METADATA = 'perf:skip';
export const SLOW_METADATA = 'perf:slow-ms';

export const servesRoute = (method: object): boolean => Reflect.hasMetadata(PATH_METADATA, method);

/** What decorators say of a method; what stands on it goes before what stands on its class. */
export function routeHandlerOf(
  controller: { readonly name: string },
  method: object,
  methodName: string,
): RouteHandler {
  const read = (key: string): unknown => Reflect.getMetadata(key, method) ?? Reflect.getMetadata(key, controller);
  return {
    className: controller.name,
    methodName,
    name: `${controller.name}.${methodName}`,
    skipped: read(SKIP_METADATA) === true,
    slowMs: (read(SLOW_METADATA) as number | undefined) ?? null,
  };
}
