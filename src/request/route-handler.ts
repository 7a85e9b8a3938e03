import type { RouteHandler } from './routes.js';
import {
  MESSAGE_MAPPING_METADATA,
  PATH_METADATA,
  RESOLVER_PROPERTY_METADATA,
  RESOLVER_REFERENCE_METADATA,
  RESOLVER_TYPE_METADATA,
} from './nest-metadata.js';

export const SKIP_METADATA = 'perf:skip';
export const SLOW_METADATA = 'perf:slow-ms';
export const NO_COMPRESSION_METADATA = 'perf:no-compression';

export const servesRoute = (method: object): boolean => Reflect.hasMetadata(PATH_METADATA, method);

const OF_PROVIDERS = [
  MESSAGE_MAPPING_METADATA,
  RESOLVER_TYPE_METADATA,
  RESOLVER_PROPERTY_METADATA,
  RESOLVER_REFERENCE_METADATA,
];

/** A provider's handler of WebSocket messages or of GraphQL: Nest reads it from the class, past the instance's own properties. */
export const isTakenFromClass = (method: object): boolean =>
  OF_PROVIDERS.some((key) => Reflect.hasMetadata(key, method));

/** Reads the decorators of a method; those of the method win over those of its class. */
export function readHandler(controller: { readonly name: string }, method: object, methodName: string): RouteHandler {
  const read = (key: string): unknown => Reflect.getMetadata(key, method) ?? Reflect.getMetadata(key, controller);
  return {
    className: controller.name,
    methodName,
    name: `${controller.name}.${methodName}`,
    skipped: read(SKIP_METADATA) === true,
    slowMs: (read(SLOW_METADATA) as number | undefined) ?? null,
    uncompressed: read(NO_COMPRESSION_METADATA) === true,
  };
}
