import { stateOfMessage } from '../../http/request-lifecycle.js';
import type { FastifyReply, FastifyRequest } from './exchange.js';
import type { Done } from './plugin.js';
import type { Body } from '../cache/cached-body.js';
import { symbolOf, valueOf } from './private-symbol.js';
import type { RepeatedBody } from '../cache/repeated-body.js';
import { compressionOf } from '../route-compression.js';

/** Fastify's own names of a reply's serialiser and of an instance's. Where they are unknown, everything is serialised. */
const OF_REPLY = 'fastify.reply.serializer';
const OF_INSTANCE = 'fastify.replySerializerDefault';

/** Marks the serialiser that is set here. */
const OURS: unique symbol = Symbol('perf:serialiser');

type Serialiser = ((value: unknown) => Body) & { [OURS]?: true };
interface SerialisedReply extends FastifyReply {
  readonly server: object;
  serializer(serialise: Serialiser | null): SerialisedReply;
}
export type OnError = (request: FastifyRequest, reply: SerialisedReply, error: unknown, done: () => void) => void;
export type PreSerialization = (request: FastifyRequest, reply: SerialisedReply, payload: unknown, done: Done) => void;
interface Hookable {
  addHook(name: 'preSerialization', hook: PreSerialization): unknown;
  addHook(name: 'onError', hook: OnError): unknown;
}

/**
 * Saves the serialisation of large bodies that are still the same. Exactly where Fastify would call `JSON.stringify`: after
 * all hooks, and only for replies that nothing else serialises, no schema of the route and no serialiser of the application.
 */
export function recogniseRepeatedBodies(fastify: Hookable): void {
  const ofInstance = symbolOf(fastify, OF_INSTANCE);
  let ofReply: symbol | undefined;
  fastify.addHook('preSerialization', (request, reply, payload, done) => {
    const repeated = compressionOf(stateOfMessage(request.raw)?.route)?.repeated;
    if (repeated?.active === true && ofInstance !== undefined) {
      ofReply ??= symbolOf(reply, OF_REPLY);
      if (isPlain(request, reply, ofInstance, ofReply)) serialiseOnce(reply, repeated);
    }
    done(null, payload);
  });
  // A later hook has failed: a reply with a serialiser would get the error's body without its type.
  fastify.addHook('onError', (_request, reply, _error, done) => {
    const serialiser = ofReply === undefined ? null : (valueOf(reply, ofReply) as Serialiser | null);
    if (serialiser?.[OURS] === true) reply.serializer(null);
    done();
  });
}

function serialiseOnce(reply: SerialisedReply, repeated: RepeatedBody): void {
  const serialise: Serialiser = (value) => {
    reply.serializer(null);
    const known = repeated.find(value);
    if (known !== null) return known.source;
    const text = JSON.stringify(value);
    repeated.serialised(value, text);
    return text;
  };
  serialise[OURS] = true;
  reply.serializer(serialise);
}

function isPlain(
  { routeOptions }: FastifyRequest,
  reply: SerialisedReply,
  ofInstance: symbol,
  ofReply: symbol | undefined,
): boolean {
  if (ofReply === undefined || valueOf(reply, ofReply) !== null || valueOf(reply.server, ofInstance) !== null)
    return false;
  return routeOptions.schema?.response === undefined;
}
