import type { ServerResponse } from 'node:http';

const SEALED = ['headersSent', 'writableEnded', 'setHeader'] as const;

/**
 * While the body is being encoded the response looks ended, as it would without compression. Returns what opens it again,
 * with what the application's middleware had put there.
 */
export function seal(response: ServerResponse): () => void {
  const before = SEALED.map((name) => [name, Object.getOwnPropertyDescriptor(response, name)] as const);
  Object.defineProperty(response, 'headersSent', { get: () => true, configurable: true });
  Object.defineProperty(response, 'writableEnded', { get: () => true, configurable: true });
  response.setHeader = () => {
    throw headersSentError();
  };
  return () => {
    for (const [name, descriptor] of before) {
      if (descriptor === undefined) Reflect.deleteProperty(response, name);
      else Object.defineProperty(response, name, descriptor);
    }
  };
}

/** Node's own error for a header that comes too late. */
export function headersSentError(): Error {
  const error = new Error('Cannot set headers after they are sent to the client');
  return Object.assign(error, { code: 'ERR_HTTP_HEADERS_SENT' });
}
