import { ServerResponse } from 'node:http';
import type { RequestState } from './request-state.js';

/** The property `stream` is no sign: an application may keep one of its own there. */
export const isHttp2 = (response: ServerResponse): boolean => !(response instanceof ServerResponse);

/** The status that was sent: over HTTP/2 an application may answer through the stream itself. */
export function readSentStatus(response: ServerResponse): number {
  const { stream } = response as { stream?: { sentHeaders?: { ':status'?: number } } | null };
  return (isHttp2(response) ? stream?.sentHeaders?.[':status'] : undefined) ?? response.statusCode;
}

/** Reads Node's own flag: compression overrides `headersSent` of a response that it delays. */
export function isHeadSent({ request }: RequestState, response: ServerResponse): boolean {
  // The client left in the middle of its body: Express's parsers answer that, into the closed connection.
  if (request?.complete === false && response.writableEnded) return false;
  const sent: unknown =
    response instanceof ServerResponse
      ? Reflect.get(ServerResponse.prototype, 'headersSent', response)
      : (response as ServerResponse).headersSent;
  return sent === true;
}

/** HTTP/2 emits `finish` before `close` even when the client has cancelled the stream; the stream's code decides. */
export function wasReset(response: ServerResponse): boolean {
  const { stream } = response as { stream?: { aborted?: boolean; rstCode?: number } | null };
  return isHttp2(response) && (stream?.aborted === true || (stream?.rstCode ?? 0) !== 0);
}
