import type { ServerResponse } from 'node:http';

type Callback = (error: Error) => void;

/** They tell an application whether it is too late. */
const STATES = ['headersSent', 'writableEnded', 'finished'];
/** Those of Node that throw when it is. */
const CHANGES = ['setHeader', 'setHeaders', 'appendHeader', 'removeHeader'];

/**
 * While the body is being encoded the response looks ended, as it would without compression. Returns what opens it again,
 * with what the application's middleware had put there.
 */
export function seal(response: ServerResponse): () => void {
  return override(response, [
    ...STATES.map((name) => [name, { get: () => true }] as const),
    ...CHANGES.map((name) => [name, { value: tooLate, writable: true }] as const),
    ['flushHeaders', { value: () => {}, writable: true }],
  ]);
}

/** The same where the head was sent. */
export const sealEnded = (response: ServerResponse): (() => void) =>
  override(response, [['writableEnded', { get: () => true }]]);

/** Puts properties on a response; the returned function puts back what was there. */
export function override(
  response: ServerResponse,
  properties: readonly (readonly [string, PropertyDescriptor])[],
): () => void {
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

function tooLate(): never {
  throw headersSentError();
}

/** Node's own error for a header that comes too late. */
export function headersSentError(): Error {
  const error = new Error('Cannot set headers after they are sent to the client');
  return Object.assign(error, { code: 'ERR_HTTP_HEADERS_SENT' });
}

/** What Node does with a write after the end; but an error that nobody listens to does not end the process. */
export function writeAfterEnd(response: ServerResponse, ...given: unknown[]): false {
  const callback = given.find((each) => typeof each === 'function') as Callback | undefined;
  const error = Object.assign(new Error('write after end'), { code: 'ERR_STREAM_WRITE_AFTER_END' });
  process.nextTick(() => {
    callback?.(error);
    if (response.listenerCount('error') > 0) response.emit('error', error);
  });
  return false;
}
