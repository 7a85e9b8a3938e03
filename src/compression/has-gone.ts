import type { ServerResponse } from 'node:http';

/** Whether the client has gone; an HTTP/2 response shows it on its stream. */
export const hasGone = (response: ServerResponse & { readonly stream?: { destroyed?: boolean } | null }): boolean =>
  response.destroyed || response.stream?.destroyed === true;
