import type { ServerResponse } from 'node:http';

/** `writeHead` is the one place that every way of answering passes, on HTTP/1 and HTTP/2. */
export function beforeHead(response: ServerResponse, hear: () => void): void {
  const writeHead = response.writeHead.bind(response) as (...head: unknown[]) => ServerResponse;
  let heard = false;
  response.writeHead = (...head: unknown[]) => {
    if (!heard && !response.headersSent) {
      heard = true;
      hear();
    }
    return writeHead(...head);
  };
}
