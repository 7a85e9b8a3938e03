import type { ServerResponse } from 'node:http';
import { stateOfMessage } from '../../http/request-lifecycle.js';
import type { CachedBody } from '../cache/cached-body.js';
import type { RepeatedBody } from '../cache/repeated-body.js';
import { isExpressTag } from '../rules/entity-tag.js';
import { compressionOf } from '../route-compression.js';

/** The parts of a response of Express 5 that are used. */
interface JsonResponse extends ServerResponse {
  readonly app: { get(setting: string): unknown };
  json(value: unknown): unknown;
  send(body: unknown): unknown;
}

/** The setting that holds what makes a tag of a body. */
const ETAG = 'etag fn';
/** What makes Express's text another than `JSON.stringify(value)`. */
const SETTINGS = ['json replacer', 'json spaces', 'json escape'];

/**
 * Saves the serialisation of large bodies that are still the same, and their tag. Exactly where Express would call
 * `JSON.stringify`, and only where its text is that of `JSON.stringify`.
 */
export function recogniseRepeatedJson(prototype: Pick<JsonResponse, 'json' | 'send'>): void {
  const { json, send } = prototype;
  if (!isOf(json, 'json replacer') || !isOf(send, ETAG)) return;
  prototype.json = function (this: JsonResponse, value) {
    const repeated = compressionOf(stateOfMessage(this.req)?.route)?.repeated;
    // Middleware that has replaced `send` may count on text.
    const isOurs = repeated?.active === true && this.send === send && !this.hasHeader('content-type') && isPlain(this);
    return isOurs ? sendRepeated(this, value, repeated) : json.call(this, value);
  };
}

/** Whether it is Express's own function, which asks for this setting: an application may have put its own in its place. */
const isOf = (method: unknown, setting: string): boolean => String(method).includes(setting);

function sendRepeated(response: JsonResponse, value: unknown, repeated: RepeatedBody): unknown {
  const known = repeated.find(value);
  const body = known?.source ?? JSON.stringify(value);
  if (known === null) repeated.serialised(value, body);
  else setTag(response, known);
  response.setHeader('content-type', 'application/json; charset=utf-8');
  return response.send(body);
}

/** Express would hash the body each time to find the same tag. */
function setTag(response: JsonResponse, known: CachedBody): void {
  const by = response.app.get(ETAG);
  if (typeof by !== 'function' || response.hasHeader('etag')) return;
  if (known.frameworkTag?.by !== by) {
    const made: unknown = by(known.source);
    // A function of the application's own may go by something else than the body.
    known.frameworkTag = { by, tag: typeof made === 'string' && isExpressTag(made, known.source) ? made : null };
  }
  const { tag } = known.frameworkTag;
  if (tag !== null) response.setHeader('etag', tag);
}

const isPlain = ({ app }: JsonResponse): boolean => SETTINGS.every((setting) => !app.get(setting));
