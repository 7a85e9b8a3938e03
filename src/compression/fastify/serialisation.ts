import type { RepeatedBody } from '../cache/repeated-body.js';
import type { FastifyReply, FastifyRequest } from './exchange.js';
import { symbolOf, valueOf } from './private-symbol.js';

/** Fastify's own names of what it keeps for a route, and of the serialiser there. Where they are unknown, everything is serialised. */
const ROUTE_CONTEXT = 'fastify.context';
const SERIALISER = 'fastify.replySerializerDefault';

type Serialiser = (value: unknown, status: number) => string;
/** What Fastify keeps for a route. */
type RouteContext = Record<symbol, Serialiser | null | undefined>;

/**
 * Saves the serialisation of large bodies that are still the same. Exactly where Fastify would call `JSON.stringify`: after
 * all hooks, and only for replies that nothing else serialises, no schema of the route and no serialiser of the application.
 */
export class RepeatedSerialisation {
  private context: symbol | undefined;
  private serialiser: symbol | undefined;
  private looked = false;

  /** Called when a route has sent a large body: from now on its values are compared, where there is something to compare with. */
  sent(request: FastifyRequest, reply: FastifyReply, repeated: RepeatedBody): void {
    if (!repeated.active) return;
    if (!this.looked) this.look(reply);
    const { context, serialiser } = this;
    if (context === undefined || serialiser === undefined) return;
    const route = valueOf(reply, context) as RouteContext;
    // Anything but null is the application's serialiser, or ours already.
    if (route[serialiser] !== null || request.routeOptions.schema?.response !== undefined) return;
    route[serialiser] = serialiserOf(repeated);
  }

  private look(reply: FastifyReply): void {
    this.looked = true;
    this.context = symbolOf(reply, ROUTE_CONTEXT);
    const route = this.context === undefined ? undefined : valueOf(reply, this.context);
    if (typeof route === 'object' && route !== null) this.serialiser = symbolOf(route, SERIALISER);
  }
}

function serialiserOf(repeated: RepeatedBody): Serialiser {
  return (value) => {
    if (!repeated.active) return JSON.stringify(value);
    const known = repeated.find(value);
    // Of a route that has sent it as bytes: `reply.serialize()` promises text.
    if (typeof known?.source === 'string') return known.source;
    const text = JSON.stringify(value);
    repeated.serialised(value, text);
    return text;
  };
}
