import type { WorkType } from '../core/record.js';
import {
  MESSAGE_MAPPING_METADATA,
  ON_WORKER_EVENT_METADATA,
  PATTERN_HANDLER_METADATA,
  PATTERN_METADATA,
  PROCESSOR_METADATA,
  RESOLVER_PROPERTY_METADATA,
  RESOLVER_REFERENCE_METADATA,
  RESOLVER_TYPE_METADATA,
} from '../request/nest-metadata.js';
import { servesRoute } from '../request/prototypes.js';

/** Written by @nestjs/bull, @nestjs/schedule and @nestjs/event-emitter. */
const QUEUE_PROCESS_METADATA = 'bull:module_queue_process';
const SCHEDULER_TYPE_METADATA = 'SCHEDULER_TYPE';
const EVENT_LISTENER_METADATA = 'EVENT_LISTENER_METADATA';
/** `PatternHandler.EVENT` of @nestjs/microservices. */
const EVENT_PATTERN = 2;

/** Metadata keys of methods that Nest calls; the first that is present wins. */
const BY_METADATA: readonly (readonly [key: string, type: WorkType])[] = [
  [SCHEDULER_TYPE_METADATA, 'cron'],
  [QUEUE_PROCESS_METADATA, 'queue'],
  [ON_WORKER_EVENT_METADATA, 'queue'],
  [PATTERN_METADATA, 'message'],
  [EVENT_LISTENER_METADATA, 'event'],
  [MESSAGE_MAPPING_METADATA, 'socket'],
  [RESOLVER_TYPE_METADATA, 'graphql'],
  [RESOLVER_PROPERTY_METADATA, 'graphql'],
  [RESOLVER_REFERENCE_METADATA, 'graphql'],
];

/** By the metadata of Nest's decorators; null for a method that Nest does not call. */
export function findEntryType(method: object): WorkType | null {
  const found = BY_METADATA.find(([key]) => Reflect.hasMetadata(key, method));
  if (found === undefined) return null;
  return found[1] === 'message' && Reflect.getMetadata(PATTERN_HANDLER_METADATA, method) === EVENT_PATTERN
    ? 'event'
    : found[1];
}

/** The type of a measured method's calls; null for a handler of HTTP, whose request is measured already. */
export function chooseWorkType(owner: object, name: string, method: object): WorkType | null {
  if (servesRoute(method)) return null;
  const isProcessor = name === 'process' && Reflect.hasMetadata(PROCESSOR_METADATA, owner);
  return isProcessor ? 'queue' : (findEntryType(method) ?? 'method');
}
