import type { ServerResponse } from 'node:http';
import { stateOfMessage } from '../../http/request-lifecycle.js';
import type { CachedBody } from '../cache/cached-body.js';
import type { RepeatedBody } from '../cache/repeated-body.js';
import { compressionOf } from '../route-compression.js';

/** The parts of a response of Express 5 that are used. */
interface JsonResponse extends ServerResponse {
  readonly app: { get(setting: string): unknown };
  json(value: unknown): unknown;
  send(body: unknown): unknown;
}

/** What makes Express's text another than `JSON.stringify(value)`. */
const SETTINGS = ['json replacer', 'json spaces', 'json escape'];

/**
 * Saves the serialisation of large bodies that are still the same, and their tag. Exactly where Express would call
 * `JSON.stringify`, and only where its text is that of `JSON.stringify`.
 */
export function recogniseRepeatedJson(prototype: Pick<JsonResponse, 'json' | 'send'>): void {
  const { json, send } = prototype;
  prototype.json = function (this: JsonResponse, value) {
    const repeated = compressionOf(stateOfMessage(this.req)?.route)?.repeated;
    // Middleware that has replaced `send` may count on text.
    const isOurs = repeated?.active === true && this.send === send && !this.hasHeader('content-type') && isPlain(this);
    return isOurs ? sendRepeated(this, value, repeated) : json.call(this, value);
  };
}

function sendRepeated(response: JsonResponse, value: unknown, repeated: RepeatedBody): unknown {
  const known = repeated.find(value);
  if (known !== null) return sendKnown(response, known);
  const text = JSON.stringify(value);
  repeated.serialised(value, text);
  response.setHeader('content-type', 'application/json; charset=utf-8');
  return response.send(text);
}

function sendKnown(response: JsonResponse, known: CachedBody): unknown {
  response.setHeader('content-type', 'application/json; charset=utf-8');
  // Express would hash the body once more to find the same.
  if (known.expressTag !== null && !response.hasHeader('etag')) response.setHeader('etag', known.expressTag);
  return response.send(known.source);
}

const isPlain = ({ app }: JsonResponse): boolean => SETTINGS.every((setting) => !app.get(setting));
