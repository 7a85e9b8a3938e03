import type { ServerResponse } from 'node:http';

type Property = readonly [name: string, descriptor: PropertyDescriptor];

/** Puts properties on a response; the returned function puts back what was there. */
export function override(response: ServerResponse, properties: readonly Property[]): () => void {
  const before = properties.map(([name]) => [name, Object.getOwnPropertyDescriptor(response, name)] as const);
  for (const [name, descriptor] of properties) {
    Object.defineProperty(response, name, { ...descriptor, configurable: true });
  }
  return () => {
    for (const [name, descriptor] of before) {
      if (descriptor === undefined) Reflect.deleteProperty(response, name);
      else Object.defineProperty(response, name, descriptor);
    }
  };
}

/** Node's own error for a header that comes too late. */
export function tooLate(): never {
  const error = new Error('Cannot set headers after they are sent to the client');
  throw Object.assign(error, { code: 'ERR_HTTP_HEADERS_SENT' });
}

/** Fails a write after the end as Node does; but an error without a listener does not end the process. */
export function writeAfterEnd(response: ServerResponse, ...given: unknown[]): false {
  const callback = given.find((each) => typeof each === 'function') as ((error: Error) => void) | undefined;
  const error = Object.assign(new Error('write after end'), { code: 'ERR_STREAM_WRITE_AFTER_END' });
  process.nextTick(() => {
    callback?.(error);
    if (response.listenerCount('error') > 0) response.emit('error', error);
  });
  return false;
}

/** Properties of a response whose head the application has given: later changes of it throw. */
const HEADED: readonly Property[] = [
  ['headersSent', { get: () => true }],
  ...['setHeader', 'setHeaders', 'appendHeader', 'removeHeader'].map(
    (name) => [name, { value: tooLate, writable: true }] as const,
  ),
];
/**
 * Properties of a response whose body the application has given too. `finished` stays false: a server that closes ends the connections
 * of finished responses, and this one is still to be sent.
 */
const ENDED: readonly Property[] = [...HEADED, ['writableEnded', { get: () => true }]];

export const lookHeaded = (response: ServerResponse): (() => void) => override(response, HEADED);
export const lookEnded = (response: ServerResponse): (() => void) => override(response, ENDED);
