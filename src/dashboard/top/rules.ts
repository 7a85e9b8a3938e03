import { parseArgs } from 'node:util';
import { runCommand, type Terminal } from './page-client.js';

export const RULES_USAGE = `Writes Prometheus rules with burn rates for objectives of routes.

  nestjs-perf rules --slo 'GET /orders p95 < 300ms 99.9%' [--slo …]

  --slo   a route, the share of requests that must be as fast (p95: 95 %), and the share that must not fail with 5xx
`;

/** The bounds of \`prometheusSink()\`, milliseconds: another one must be among its \`buckets\`. */
const USUAL_MS = new Set([5, 10, 25, 50, 75, 100, 250, 500, 750, 1_000, 2_500, 5_000, 7_500, 10_000]);
/** Google's SRE workbook, "Multiwindow, Multi-Burn-Rate Alerts": how fast the budget of 30 days burns, over both windows. */
const BURNS = [
  { factor: 14.4, long: '1h', short: '5m', severity: 'critical' },
  { factor: 6, long: '6h', short: '30m', severity: 'critical' },
  { factor: 3, long: '1d', short: '2h', severity: 'warning' },
  { factor: 1, long: '3d', short: '6h', severity: 'warning' },
] as const;
const WINDOWS = ['5m', '30m', '1h', '2h', '6h', '1d', '3d'] as const;

interface Slo {
  readonly method: string;
  readonly route: string;
  readonly quantile: number;
  readonly ms: number;
  readonly success: number;
}

/** Resolves with the exit code. */
export const rules = (args: readonly string[], terminal: Pick<Terminal, 'write' | 'complain'>): Promise<number> =>
  runCommand(
    RULES_USAGE,
    terminal,
    () => {
      const { values } = parseArgs({
        args: [...args],
        options: { slo: { type: 'string', multiple: true, default: [] }, help: { type: 'boolean', short: 'h' } },
      });
      return values.help === true ? null : writeRules(values.slo);
    },
    (text) => terminal.write(text),
  );

/** A rule file of Prometheus. @throws for a text that is no objective */
export function writeRules(given: readonly string[]): string {
  if (given.length === 0) throw new Error("Give an objective: --slo 'GET /orders p95 < 300ms 99.9%'.");
  return `groups:\n${given.map((text) => group(readSlo(text), text)).join('')}`;
}

const SLO = /^([A-Z]+) (\/\S*) p(\d{1,2}(?:\.\d+)?) *< *(\d+(?:\.\d+)?)(ms|s) +(\d{1,2}(?:\.\d+)?)%$/;

function readSlo(text: string): Slo {
  const found = SLO.exec(text.trim().replaceAll(/ +/g, ' '));
  if (found === null)
    throw new Error(`An objective reads 'GET /orders p95 < 300ms 99.9%', got ${JSON.stringify(text.slice(0, 100))}.`);
  const [, method, route, quantile, amount, unit, success] = found as unknown as [string, ...string[]] as string[];
  return {
    method: method!,
    route: route!,
    quantile: Number(quantile) / 100,
    ms: Number(amount) * (unit === 's' ? 1_000 : 1),
    success: Number(success) / 100,
  };
}

function group(slo: Slo, text: string): string {
  const { method, route, quantile, ms, success } = slo;
  const labels = `http_request_method="${method}", http_route="${escape(route)}"`;
  const total = (window: string): string =>
    `sum by (job) (rate(http_server_request_duration_seconds_count{${labels}}[${window}]))`;
  const failed = (window: string): string =>
    `sum by (job) (rate(http_server_request_duration_seconds_count{${labels}, http_response_status_code=~"5.."}[${window}])) or 0 * ${total(window)}`;
  const fast = (window: string): string =>
    `sum by (job) (rate(http_server_request_duration_seconds_bucket{${labels}, le="${ms / 1_000}"}[${window}]))`;
  const objectives = [
    { name: 'slow', budget: 1 - quantile, ratio: (window: string) => `1 - (${fast(window)} / ${total(window)})` },
    { name: 'failed', budget: 1 - success, ratio: (window: string) => `(${failed(window)}) / ${total(window)}` },
  ];
  const lines = [`  # ${text}`];
  if (!USUAL_MS.has(ms)) {
    lines.push(
      `  # ${ms / 1_000} s is no usual bound: give it to the sink, prometheusSink({ buckets: [0.05, 0.1, ${ms / 1_000}, 1, 5] })`,
    );
  }
  lines.push(`  - name: ${quote(`slo ${method} ${route}`)}`, '    rules:');
  const slug = `{slo=${JSON.stringify(`${method} ${route}`)}}`;
  for (const { name, ratio } of objectives) {
    for (const window of WINDOWS) {
      lines.push(
        `      - record: perf:slo_${name}:ratio_rate${window}`,
        `        expr: ${quote(ratio(window))}`,
        `        labels: { slo: ${quote(`${method} ${route}`)} }`,
      );
    }
  }
  for (const { name, budget } of objectives) {
    for (const { factor, long, short, severity } of BURNS) {
      const over = (window: string): string =>
        `perf:slo_${name}:ratio_rate${window}${slug} > ${Number((factor * budget).toPrecision(6))}`;
      lines.push(
        `      - alert: ${name === 'slow' ? 'SloTooSlow' : 'SloFailing'}`,
        `        expr: ${quote(`${over(long)} and ${over(short)}`)}`,
        `        labels: { severity: ${severity}, slo: ${quote(`${method} ${route}`)}, window: ${long} }`,
        '        annotations:',
        `          summary: ${quote(`${method} ${route}: requests that are ${name === 'slow' ? `slower than ${ms} ms` : 'answered with 5xx'} burn the budget of 30 days ${factor} times too fast`)}`,
      );
    }
  }
  return `${lines.join('\n')}\n`;
}

const escape = (route: string): string => route.replaceAll('\\', '\\\\').replaceAll('"', '\\"');
const quote = (text: string): string => `'${text.replaceAll("'", "''")}'`;
