/** Posts to these hosts are events and configurations of Statsig's SDKs. */
const STATSIG = /(^|\.)(statsigapi\.net|prodregistryv2\.org|featureassets\.org|statsigcdn\.com)(:\d+)?$/;

type Environment = Readonly<Record<string, string | undefined>>;

/** The global of every copy of `@opentelemetry/api` 1.x, and the key under which `suppressTracing()` marks a context. */
const OTEL_API = Symbol.for('opentelemetry.js.api.1');
const SUPPRESSED = Symbol.for('OpenTelemetry SDK Context Key SUPPRESS_TRACING');
interface OtelGlobal {
  readonly context?: { active(): { getValue(key: symbol): unknown } };
}

/** Whether the code that runs exports telemetry: the OpenTelemetry SDK marks the context of each export. */
const isSuppressed = (): boolean =>
  (globalThis as { [OTEL_API]?: OtelGlobal })[OTEL_API]?.context?.active().getValue(SUPPRESSED) === true;

/** Whether a call that begins now is an export of telemetry. `path` with its query string. */
export type IsExport = (host: string, path: string) => boolean;

/** Finds exports by the addresses in the environment of their exporters, too. */
export function findExports(environment: Environment = process.env): IsExport {
  const paths = listEndpoints(environment);
  const isEndpoint = (host: string, path: string): boolean =>
    paths.some((one) => one.host === host && one.path.test(path));
  return (host, path) => isEndpoint(host, path) || STATSIG.test(host) || isSuppressed();
}

interface Endpoint {
  readonly host: string;
  readonly path: RegExp;
}

/** OTLP's paths: https://opentelemetry.io/docs/specs/otel/protocol/exporter/#endpoint-urls-for-otlphttp. */
function listEndpoints(environment: Environment): Endpoint[] {
  const { DD_TRACE_AGENT_URL, DD_AGENT_HOST, DD_TRACE_AGENT_PORT = '8126', SENTRY_DSN = '' } = environment;
  const otlp = (signal: string): string | undefined => environment[`OTEL_EXPORTER_OTLP_${signal}ENDPOINT`];
  const datadog = DD_TRACE_AGENT_URL ?? (DD_AGENT_HOST && `http://${DD_AGENT_HOST}:${DD_TRACE_AGENT_PORT}`);
  // A DSN is `https://key@host/project`; events go to `/api/<project>/envelope/`.
  const sentry = SENTRY_DSN.replace(/^(https?:\/\/)[^@]*@([^/]+)\/(?:.*\/)?(\d+)$/, '$1$2/api/$3');
  const signals = ['TRACES_', 'METRICS_', 'LOGS_'].map((signal) => endpoint(otlp(signal), ''));
  return [
    endpoint(otlp(''), '/v1/(?:traces|metrics|logs)'),
    ...signals,
    endpoint(datadog, '(?:/.*)?'),
    endpoint(sentry, '/.*'),
  ].flat();
}

/** `rest`: what follows the path of the URL, which ends there or with its query string. Empty for a text that is no URL. */
function endpoint(url: string | undefined, rest: string): Endpoint[] {
  if (url === undefined || !URL.canParse(url)) return [];
  const { host, pathname } = new URL(url);
  const base = pathname.replace(/\/$/, '').replaceAll(/[^\w/-]/g, String.raw`\$&`);
  return [{ host, path: new RegExp(`^${base}${rest}/?(?:[?#]|$)`) }];
}
