import type { RequestState } from '../../request/request-state.js';
import type { FastifyRequest } from './response-view.js';

const NAME = 'if-none-match';

/**
 * Of an answer that its client has already, hooks of others (`@fastify/etag`) would drop the body, and with it the answer of
 * everybody who waits. While it is sent they do not see what the client has.
 */
export function hideCondition(
  state: RequestState,
  { raw }: FastifyRequest,
  reply: { send: (body?: unknown) => unknown },
): void {
  const given = raw.headers[NAME];
  if (given === undefined) return;
  state.hiddenCondition = given;
  const { send } = reply;
  reply.send = (body) => {
    delete raw.headers[NAME];
    return send.call(reply, body);
  };
}

/** For compression, which answers it, and all that comes after. */
export function showCondition(state: RequestState, { raw }: FastifyRequest): void {
  if (state.hiddenCondition !== null) raw.headers[NAME] = state.hiddenCondition;
}
