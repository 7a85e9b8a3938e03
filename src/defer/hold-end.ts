import type { ServerResponse } from 'node:http';
import type { RequestWork } from './request-work.js';

const HELD: unique symbol = Symbol('perf:end-held');

/** Holds the last byte of a response until its durable work is on disk. */
export function holdEnd(response: ServerResponse & { [HELD]?: true }, work: RequestWork): void {
  if (response[HELD] === true || response.writableEnded) return;
  response[HELD] = true;
  const end = response.end.bind(response) as (...parameters: unknown[]) => ServerResponse;
  response.end = (...parameters: unknown[]) => {
    const { written } = work;
    if (written === null) return end(...parameters);
    void written.then(() => end(...parameters));
    return response;
  };
}
