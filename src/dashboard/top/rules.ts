import { runCommand, type Terminal } from './page-client.js';

const USAGE = `Writes Prometheus rules with burn rates for objectives of routes.

  nestjs-perf rules --slo 'GET /orders p95 < 300ms 99.9%' [--slo …]

  --slo   a route, the share of requests that must be as fast (p95: 95 %), and the share that must not fail with 5xx
`;

/** The bounds of `prometheusSink()`, seconds. */
const USUAL: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
/** Google's SRE workbook, "Multiwindow, Multi-Burn-Rate Alerts": how fast the budget of 30 days burns, over both windows. */
const BURNS = [
  { factor: 14.4, long: '1h', short: '5m', severity: 'critical' },
  { factor: 6, long: '6h', short: '30m', severity: 'critical' },
  { factor: 3, long: '1d', short: '2h', severity: 'warning' },
  { factor: 1, long: '3d', short: '6h', severity: 'warning' },
] as const;
const WINDOWS = ['5m', '30m', '1h', '2h', '6h', '1d', '3d'] as const;

export const rules = (args: readonly string[], terminal: Pick<Terminal, 'write' | 'complain'>): Promise<number> =>
  runCommand(args, terminal, {
    usage: USAGE,
    options: { slo: { type: 'string', multiple: true, default: [] } },
    read: ({ values }) => readObjectives(values.slo),
    work: (objectives) => {
      terminal.write(formatRules(objectives));
      const advice = adviseBuckets(objectives);
      if (advice !== null) terminal.complain(`${advice}\n`);
    },
  });

/** A rule file of Prometheus. @throws for a text that is no objective */
export const writeRules = (given: readonly string[]): string => formatRules(readObjectives(given));

function formatRules(objectives: readonly Objective[]): string {
  const advice = adviseBuckets(objectives);
  return `${advice === null ? '' : `# ${advice}\n`}groups:\n${objectives.map(writeGroup).join('')}`;
}

interface Objective {
  /** `'GET /orders p95 < 300ms'` or `'GET /orders 99.9%'`: two objectives of one route must not share a series. */
  readonly slo: string;
  readonly name: 'slow' | 'failed';
  readonly fault: string;
  /** The share of requests that may be slow or fail. */
  readonly budget: number;
  /** The bound of the histogram that it needs. */
  readonly seconds: number | null;
  readonly ratio: (window: string) => string;
}

const SLO = /^([A-Z]+) (\/\S*) p(\d{1,2}(?:\.\d+)?) *< *(\d+(?:\.\d+)?)(ms|s) +(\d{1,2}(?:\.\d+)?)%$/;

/** Each once: several latencies of one route may have the same share of failures. */
function readObjectives(given: readonly string[]): Objective[] {
  if (given.length === 0) throw new Error("Give an objective: --slo 'GET /orders p95 < 300ms 99.9%'.");
  return [...new Map(given.flatMap(readSlo).map((one) => [one.slo, one])).values()];
}

function readSlo(text: string): [Objective, Objective] {
  const found = SLO.exec(text.trim().replaceAll(/ +/g, ' '));
  if (found === null)
    throw new Error(`An objective reads 'GET /orders p95 < 300ms 99.9%', got ${JSON.stringify(text.slice(0, 100))}.`);
  const [, method, path = '', quantile, amount, unit, success] = found;
  const seconds = unit === 's' ? Number(amount) : Number(amount) / 1_000;
  const ms = Number((1_000 * seconds).toPrecision(12));
  const pattern = path.replaceAll('\\', '\\\\').replaceAll('"', '\\"');
  const sum = (counter: string, window: string, labels = ''): string =>
    `sum by (job) (rate(http_server_request_duration_seconds_${counter}{http_request_method="${method}", http_route="${pattern}"${labels}}[${window}]))`;
  const total = (window: string): string => sum('count', window);
  const failed = (window: string): string =>
    `${sum('count', window, ', http_response_status_code=~"5.."')} or 0 * ${total(window)}`;
  // Prometheus 3 writes the bound `1` as `1.0`.
  const le = Number.isInteger(seconds) ? `le=~"${seconds}|${seconds}\\\\.0"` : `le="${seconds}"`;
  return [
    {
      slo: `${method} ${path} p${Number(quantile)} < ${ms}ms`,
      name: 'slow',
      fault: `slower than ${ms} ms`,
      budget: 1 - Number(quantile) / 100,
      seconds,
      ratio: (window) => `1 - (${sum('bucket', window, `, ${le}`)} / ${total(window)})`,
    },
    {
      slo: `${method} ${path} ${Number(success)}%`,
      name: 'failed',
      fault: 'answered with 5xx',
      budget: 1 - Number(success) / 100,
      seconds: null,
      ratio: (window) => `(${failed(window)}) / ${total(window)}`,
    },
  ];
}

/** Null where the bounds of `prometheusSink()` suffice. */
function adviseBuckets(objectives: readonly Objective[]): string | null {
  const missing = objectives.flatMap(({ seconds }) => (seconds === null || USUAL.includes(seconds) ? [] : [seconds]));
  if (missing.length === 0) return null;
  const buckets = [...new Set([...USUAL, ...missing])].toSorted((a, b) => a - b).join(', ');
  return `Without a bucket that ends at ${missing.join(' s, ')} s SloTooSlow never fires: prometheusSink({ buckets: [${buckets}] })`;
}

function writeGroup({ slo, name, fault, budget, ratio }: Objective): string {
  const records = WINDOWS.map(
    (window) => `      - record: perf:slo_${name}:ratio_rate${window}
        expr: ${quote(ratio(window))}
        labels: { slo: ${quote(slo)} }
`,
  );
  // A share above 1 is never reached.
  const burns = BURNS.filter(({ factor }) => factor * budget < 1);
  const alerts = burns.map(({ factor, long, short, severity }) => {
    const [isLong, isShort] = [long, short].map(
      (window) =>
        `perf:slo_${name}:ratio_rate${window}{slo=${JSON.stringify(slo)}} > ${Number((factor * budget).toPrecision(6))}`,
    );
    const pace = factor === 1 ? 'use up the budget of 30 days' : `burn the budget of 30 days ${factor} times too fast`;
    return `      - alert: ${name === 'slow' ? 'SloTooSlow' : 'SloFailing'}
        expr: ${quote(`${isLong} and ${isShort}`)}
        labels: { severity: ${severity}, slo: ${quote(slo)}, window: ${long} }
        annotations:
          summary: ${quote(`${slo}: requests that are ${fault} ${pace}`)}
`;
  });
  return [`  - name: ${quote(`slo ${slo}`)}\n    rules:\n`, ...records, ...alerts].join('');
}

const quote = (text: string): string => `'${text.replaceAll("'", "''")}'`;
