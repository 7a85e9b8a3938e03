import { describe, expect, it } from 'vitest';
import { SeriesIndex, type Attributes, type SeriesRules } from '../../../../src/entries/metrics/durations.js';
import { SeriesCap } from '../../../../src/entries/metrics/series-cap.js';

const get = (route: string, status: number) => ({ method: 'GET', route, handler: null, status });
const labelled = ({ labels }: { labels: Attributes }): string =>
  `${labels['http.route']} ${labels['http.response.status_code']}`;
const indexWith = (rules: Partial<SeriesRules<Attributes>> = {}) =>
  new SeriesIndex<Attributes>(new SeriesCap(), { toLabels: (attributes) => attributes, ...rules });

describe('the series of a duration', () => {
  it('are of a status, and of its class for a route with more than eight of them, from the first on', () => {
    const index = indexWith();
    const all = (route: string, statuses: number): string[] =>
      Array.from({ length: statuses }, (_, i) => labelled(index.of(get(route, 200 + i))));
    expect(all('/eight', 8)).toEqual(all('/eight', 8));
    expect(new Set(all('/eight', 8)).size).toBe(8);
    all('/proxy', 800);
    expect([...new Set(all('/proxy', 800))]).toEqual(['/proxy 2xx', '/proxy 3xx', '/proxy 4xx', '/proxy 5xx']);
    expect(new Set(all('/eight', 8)).size).toBe(8);
  });

  it('are of classes alone where the sink says so', () => {
    const index = indexWith({ byClass: true });
    expect([200, 204, 503].map((status) => labelled(index.of(get('/a', status))))).toEqual([
      '/a 2xx',
      '/a 2xx',
      '/a 5xx',
    ]);
  });

  it('are bounded as a whole, and a measurement stays where it was', () => {
    const index = indexWith({ maxSeries: 10 });
    const routes = Array.from({ length: 60 }, (_, i) => `/r${i}`);
    const labels = (): string[] =>
      routes.flatMap((route) => [200, 201, 404].map((status) => labelled(index.of(get(route, status)))));
    const first = labels();
    expect(first.slice(0, 4)).toEqual(['/r0 200', '/r0 201', '/r0 404', '/r1 200']);
    expect(first.slice(9, 12)).toEqual(['/r3 200', 'other 2xx', 'other 4xx']);
    expect(first.slice(-3)).toEqual(['other 2xx', 'other 2xx', 'other 4xx']);
    expect(new Set(first).size).toBe(12);
    expect(labels()).toEqual(first);
  });
});
