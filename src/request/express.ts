import type { IncomingMessage } from 'node:http';
import type { RequestState } from './request-state.js';
import type { Route, Routes } from './routes.js';

type Path = string | RegExp | (string | RegExp)[];
interface ExpressRequest extends IncomingMessage {
  readonly route?: { readonly path?: unknown };
  readonly baseUrl?: string;
}

/**
 * A route that Nest has not registered, or the mount path of a function that answers by itself, as GraphQL servers do.
 * `isOldNest`: Nest emits no routes, so the framework's may be Nest's.
 */
export function findExpressRoute(
  { request, closed, status }: RequestState,
  routes: Routes,
  isOldNest: boolean,
): Route | null {
  if (request === null || (closed && status === 404)) return null;
  const { route, baseUrl = '' } = request as ExpressRequest;
  const path = route?.path;
  const pattern = `${maskMount(baseUrl)}${isPath(path) ? [path].flat().map(String).join('|') : ''}`;
  return pattern === '' ? null : routes.findOfFramework(request.method, pattern, isOldNest && baseUrl === '');
}

/** Any code may set `req.route`. Express leaves the last one there, which for wildcards is mostly a middleware's. */
function isPath(path: unknown): path is Path {
  if (typeof path === 'string') return !path.includes('*');
  return path instanceof RegExp || (Array.isArray(path) && path.every(isPath));
}

/** A mount path as a label. Express reports it as the client sent it: a segment that may be an id or a secret becomes `*`. */
const maskMount = (baseUrl: string): string =>
  baseUrl
    .toLowerCase()
    .split('/')
    .map((segment) => (segment === '' || /^[a-z][a-z_-]{0,23}$/.test(segment) ? segment : '*'))
    .join('/');
