import type { Attributes } from '@opentelemetry/api';
import type { RequestRecord } from '../../core/record.js';
import type { SeriesCap } from '../metrics/series-cap.js';

/** The attributes of a request's series, made once per method, route and status. */
export class RequestAttributes {
  private readonly known = new Map<string, Map<number, Attributes>>();

  constructor(private readonly cap: SeriesCap) {}

  of({ method, route, status }: RequestRecord): Attributes {
    const capped = this.cap.route(route);
    const key = `${method} ${capped}`;
    let byStatus = this.known.get(key);
    if (byStatus === undefined) this.known.set(key, (byStatus = new Map()));
    let attributes = byStatus.get(status);
    if (attributes === undefined) byStatus.set(status, (attributes = attributesOf(method, capped, status)));
    return attributes;
  }
}

/** `http.route` is left out where no route matched, `error.type` is there where the server failed: as the convention has it. */
function attributesOf(method: string, route: string, status: number): Attributes {
  const attributes: Attributes = { 'http.request.method': method, 'http.response.status_code': status };
  if (route !== '') attributes['http.route'] = route;
  if (status >= 500) attributes['error.type'] = String(status);
  return attributes;
}
