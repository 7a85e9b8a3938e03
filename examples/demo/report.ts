import type { PerfSnapshot, RouteSnapshot } from 'nestjs-perf';
import { table } from './table.js';

const ms = (value: number): string => value.toFixed(value < 10 ? 1 : 0);

/** Every route, without a line of the user's code: from `PerfService.snapshot()`. */
export function routesReport(snapshot: PerfSnapshot): string {
  const rows = [...snapshot.routes]
    .sort((a, b) => b.count - a.count)
    .map((row: RouteSnapshot) => [
      `${row.method} ${row.route === '' ? '(no route)' : row.route}`,
      row.handler ?? '-',
      row.count,
      row.errors,
      ms(row.durationMs.p50),
      ms(row.durationMs.p95),
      ms(row.durationMs.p99),
      ...row.over.map(({ count }) => count),
    ]);
  const over = snapshot.routes[0]?.over.map((bound) => `>${bound.ms / 1000}s`) ?? [];
  return table(['route', 'handler', 'count', '5xx', 'p50 ms', 'p95 ms', 'p99 ms', ...over], rows);
}
