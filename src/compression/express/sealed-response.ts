import type { ServerResponse } from 'node:http';

/** While the body is being encoded the response looks ended, as it would without compression. */
export function seal(response: ServerResponse): void {
  Object.defineProperty(response, 'headersSent', { get: () => true, configurable: true });
  Object.defineProperty(response, 'writableEnded', { get: () => true, configurable: true });
  response.setHeader = () => {
    throw headersSentError();
  };
}

/** Undoes {@link seal}. */
export function unseal(response: ServerResponse): void {
  for (const name of ['headersSent', 'writableEnded', 'setHeader']) {
    if (Object.hasOwn(response, name)) Reflect.deleteProperty(response, name);
  }
}

/** Node's own error for a header that comes too late. */
export function headersSentError(): Error {
  const error = new Error('Cannot set headers after they are sent to the client');
  return Object.assign(error, { code: 'ERR_HTTP_HEADERS_SENT' });
}
