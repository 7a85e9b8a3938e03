import type { IncomingMessage } from 'node:http';
import type { RequestState } from './request-state.js';
import { NO_STARTS, type Route, type Routes } from './routes.js';

interface ExpressRequest extends IncomingMessage {
  readonly route?: { readonly path?: unknown };
  readonly baseUrl?: string;
}

/**
 * Finds the route of a request that Nest's callback has not named: one of `app.use()` or `app.get()`, as of a GraphQL server; Nest's own
 * where its middleware has answered (`forRoutes()` registers the same path), and before Nest 11.1.4, which has no such callback.
 */
export function findExpressRoute({ request, closed, status }: RequestState, routes: Routes): Route | null {
  // Express leaves the path of the last middleware on a request that nothing has matched.
  if (request === null || (closed && status === 404)) return null;
  const { route, baseUrl = '' } = request as ExpressRequest;
  // Any code may set `req.route`, and a wildcard there is mostly a middleware's.
  const path = typeof route?.path === 'string' && !route.path.includes('*') ? route.path : '';
  // Nest registers middleware of a controller with a slash at the end, and its route without.
  const pattern = `${maskMount(baseUrl)}${path}`.replace(/(?<=.)\/$/, '');
  if (pattern === '') return null;
  // Nest mounts no routers. A route that the application has registered on Express may end as a handler's path.
  return routes.findFrameworkRoute(request.method, pattern, baseUrl === '' ? routes.pathStarts : NO_STARTS);
}

/** A mount path as a label. Express reports it as the client sent it: a segment that may be an id or a secret becomes `*`. */
const maskMount = (baseUrl: string): string =>
  baseUrl
    .toLowerCase()
    .split('/')
    .map((segment) => (segment === '' || /^[a-z][a-z_-]{0,23}$/.test(segment) ? segment : '*'))
    .join('/');
