import type { ServerResponse } from 'node:http';

type Property = readonly [name: string, descriptor: PropertyDescriptor];

/**
 * What tells an application that it is too late. Not `finished`: a server that closes ends the connections of responses that are, and
 * this one is still to be sent.
 */
export const LOOKS_ENDED: readonly Property[] = ['headersSent', 'writableEnded'].map((name) => [
  name,
  { get: () => true },
]);

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

/** What a Fastify response does for an application while its body is being encoded, as if it had ended. Returns what opens it again. */
export function seal(response: ServerResponse): () => void {
  const late = (...given: unknown[]): unknown => writeAfterEnd(response, ...given);
  return override(response, [
    ...LOOKS_ENDED,
    ['writeHead', { value: tooLate, writable: true }],
    ['write', { value: late, writable: true }],
    // Node lets a second `end()` without a chunk pass.
    [
      'end',
      {
        value: (chunk?: unknown, ...given: unknown[]) => (isChunk(chunk) ? late(chunk, ...given) : response),
        writable: true,
      },
    ],
  ]);
}

export const isChunk = (chunk: unknown): chunk is string | Uint8Array =>
  typeof chunk === 'string' || chunk instanceof Uint8Array;

export function tooLate(): never {
  throw headersSentError();
}

/** Node's own error for a header that comes too late. */
export function headersSentError(): Error {
  const error = new Error('Cannot set headers after they are sent to the client');
  return Object.assign(error, { code: 'ERR_HTTP_HEADERS_SENT' });
}

/** What Node does with a write after the end; but an error that nobody listens to does not end the process. */
export function writeAfterEnd(response: ServerResponse, ...given: unknown[]): false {
  const callback = given.find((each) => typeof each === 'function') as ((error: Error) => void) | undefined;
  const error = Object.assign(new Error('write after end'), { code: 'ERR_STREAM_WRITE_AFTER_END' });
  process.nextTick(() => {
    callback?.(error);
    if (response.listenerCount('error') > 0) response.emit('error', error);
  });
  return false;
}
