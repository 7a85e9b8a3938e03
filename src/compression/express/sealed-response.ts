import type { ServerResponse } from 'node:http';

/** They tell an application whether it is too late. */
const STATES = ['headersSent', 'writableEnded'];
/** Those of Node that throw when it is. */
const CHANGES = ['setHeader', 'setHeaders', 'appendHeader', 'removeHeader'];
const SEALED = [...STATES, ...CHANGES, 'flushHeaders'];

/**
 * While the body is being encoded the response looks ended, as it would without compression. Returns what opens it again,
 * with what the application's middleware had put there.
 */
export function seal(response: ServerResponse): () => void {
  const before = SEALED.map((name) => [name, Object.getOwnPropertyDescriptor(response, name)] as const);
  const put = (name: string, descriptor: PropertyDescriptor): void =>
    void Object.defineProperty(response, name, { ...descriptor, configurable: true });
  for (const name of STATES) put(name, { get: () => true });
  for (const name of CHANGES) put(name, { value: tooLate, writable: true });
  put('flushHeaders', { value: () => {}, writable: true });
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
