import { isSafe } from '../allowed.js';
import { nameRoute, type TrafficRequest } from '../traffic.js';

/** So many pairs tell a change of some percent; a route with less is asked again. */
const ENOUGH = 40;

/** The requests to send: at most so many of each route, in the order of the recording; repeated where there are few and repeating is harmless. */
export function planRequests(requests: readonly TrafficRequest[], perRoute: number): TrafficRequest[] {
  const sent = new Map<string, number>();
  const take = (request: TrafficRequest, most: number): boolean => {
    const name = nameRoute(request);
    const count = sent.get(name) ?? 0;
    if (count < most) sent.set(name, count + 1);
    return count < most;
  };
  const plan = requests.map(unconditional).filter((request) => take(request, perRoute));
  const again = plan.filter(({ method }) => isSafe(method));
  for (let more = again; more.length > 0;) {
    more = again.filter((request) => take(request, Math.min(ENOUGH, perRoute)));
    plan.push(...more);
  }
  return plan;
}

/** A 304 has no body to compare. */
function unconditional(request: TrafficRequest): TrafficRequest {
  const { 'if-none-match': _tag, 'if-modified-since': _time, ...headers } = request.headers;
  return { ...request, headers, status: request.status === 304 ? 200 : request.status };
}
