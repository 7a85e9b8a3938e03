/** Keys of Nest's metadata, under Nest's own names. Nest does not export them; a test compares them with each major's. */
export const PATH_METADATA = 'path';
export const METHOD_METADATA = 'method';
export const VERSION_METADATA = '__version__';
export const MODULE_PATH = '__module_path__';
export const SSE_METADATA = '__sse__';
export const GUARDS_METADATA = '__guards__';
export const MODULE_METADATA = {
  IMPORTS: 'imports',
  PROVIDERS: 'providers',
  CONTROLLERS: 'controllers',
  EXPORTS: 'exports',
};
/** Keys of `@MessagePattern()` and `@EventPattern()`, and of `@SubscribeMessage()`. */
export const PATTERN_METADATA = 'microservices:pattern';
/** On handlers of WebSocket messages, and on those of GraphQL. */
export const MESSAGE_MAPPING_METADATA = 'websockets:message_mapping';
export const RESOLVER_TYPE_METADATA = 'graphql:resolver_type';
export const RESOLVER_PROPERTY_METADATA = 'graphql:resolve_property';
export const RESOLVER_REFERENCE_METADATA = 'graphql:resolve_reference';
/** On a class that works a queue of BullMQ, and on its listeners to jobs. */
export const PROCESSOR_METADATA = 'bullmq:processor_metadata';
export const ON_WORKER_EVENT_METADATA = 'bullmq:worker_events_metadata';
/** On methods: whether a pattern is a message's (1) or an event's (2). */
export const PATTERN_HANDLER_METADATA = 'microservices:handler_type';
