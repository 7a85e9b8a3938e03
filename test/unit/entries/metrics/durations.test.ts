import { describe, expect, it } from 'vitest';
import { SeriesIndex, type Attributes } from '../../../../src/entries/metrics/durations.js';
import { SeriesCap } from '../../../../src/entries/metrics/series-cap.js';

const get = (route: string, status: number) => ({ method: 'GET', route, handler: null, status });
const labelled = ({ labels }: { labels: Attributes }): string =>
  `${labels['http.route']} ${labels['http.response.status_code']}`;

describe('the series of a duration', () => {
  it('are of a registered status, of the first twenty others, then of their class', () => {
    const index = new SeriesIndex(new SeriesCap(), (attributes) => attributes);
    const all = Array.from({ length: 800 }, (_, i) => labelled(index.of(get('/a', 200 + i))));
    expect(new Set(all).size).toBeLessThan(90);
    expect(all.slice(0, 5)).toEqual(['/a 200', '/a 201', '/a 202', '/a 203', '/a 204']);
    expect(all[418 - 200]).toBe('/a 418');
    expect([all[455 - 200], all[599 - 200], all[999 - 200]]).toEqual(['/a 400', '/a 500', '/a 500']);
  });

  it('are bounded as a whole, and a measurement stays where it was', () => {
    const index = new SeriesIndex(new SeriesCap(), (attributes) => attributes, 10);
    const routes = Array.from({ length: 60 }, (_, i) => `/r${i}`);
    const labels = (): string[] =>
      routes.flatMap((route) => [200, 201, 404].map((status) => labelled(index.of(get(route, status)))));
    const first = labels();
    expect(first.slice(0, 4)).toEqual(['/r0 200', '/r0 201', '/r0 404', '/r1 200']);
    expect(first.slice(12, 15)).toEqual(['/r4 200', '/r4 200', '/r4 400']);
    expect(first.slice(-3)).toEqual(['_OTHER 200', '_OTHER 200', '_OTHER 400']);
    expect(new Set(first).size).toBe(22);
    expect(labels()).toEqual(first);
  });
});
