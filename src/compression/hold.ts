import type { ServerResponse } from 'node:http';
import type { RequestState } from '../request/request-state.js';
import { stateOf } from '../request/tracker.js';
import type { Sending } from './chunk.js';
import type { CompressionEngine } from './engine.js';
import { HeldResponse } from './held-response.js';

const heldBy = (response: ServerResponse): HeldResponse => stateOf(response)!.heldResponse as HeldResponse;

/** Functions of a response that lead to its `HeldResponse`. All responses share them: closures for each would cost more. */
const STAND_INS: Sending = {
  writeHead(this: ServerResponse, ...head: unknown[]) {
    return heldBy(this).writeHead(head);
  },
  write(this: ServerResponse, chunk, encoding, callback) {
    return heldBy(this).write(chunk, encoding, callback);
  },
  end(this: ServerResponse, chunk, encoding, callback) {
    return heldBy(this).end(chunk, encoding, callback);
  },
  flushHeaders(this: ServerResponse) {
    heldBy(this).flushHeaders();
  },
};

/** Holds the response of a request that begins. */
export function holdResponse(state: RequestState, engine: CompressionEngine): void {
  const { request, response } = state;
  if (request === null || response === null) return;
  const ifNoneMatch = engine.translate(request);
  state.heldResponse = new HeldResponse(state, request, response, engine, ifNoneMatch);
  const held = response as unknown as Sending;
  held.writeHead = STAND_INS.writeHead;
  held.write = STAND_INS.write;
  held.end = STAND_INS.end;
  held.flushHeaders = STAND_INS.flushHeaders;
}
