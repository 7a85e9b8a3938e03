/** Hosts of Statsig's SDKs, for their events and configurations. */
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

/** Makes the function that recognises exports: by the addresses in the environment, and by the SDK's own mark. */
export function findExports(environment: Environment = process.env): IsExport {
  const endpoints = listEndpoints(environment);
  return (host, path) =>
    endpoints.some((one) => one.host === host && isBelow(one.pathname.replace(/\/$/, ''), path)) ||
    STATSIG.test(host) ||
    isSuppressed();
}

const isBelow = (base: string, path: string): boolean =>
  path.startsWith(base) && /^(?:[/?#]|$)/.test(path.slice(base.length));

/** OTLP's paths: https://opentelemetry.io/docs/specs/otel/protocol/exporter/#endpoint-urls-for-otlphttp. */
function listEndpoints(environment: Environment): URL[] {
  const { DD_TRACE_AGENT_URL, DD_AGENT_HOST, DD_TRACE_AGENT_PORT = '8126', SENTRY_DSN } = environment;
  const otlp = environment['OTEL_EXPORTER_OTLP_ENDPOINT']?.replace(/\/$/, '');
  const addresses = [
    ...['traces', 'metrics', 'logs'].map((signal) => `${otlp}/v1/${signal}`),
    ...['TRACES', 'METRICS', 'LOGS'].map((signal) => environment[`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`]),
    DD_TRACE_AGENT_URL ?? (DD_AGENT_HOST && `http://${DD_AGENT_HOST}:${DD_TRACE_AGENT_PORT}`),
    // A DSN is `https://key@host/project`; events go to `/api/<project>/envelope/`.
    SENTRY_DSN?.replace(/^(https?:\/\/)[^@]*@([^/]+)\/(?:.*\/)?(\d+)$/, '$1$2/api/$3'),
  ];
  return addresses.flatMap((address = '') => (URL.canParse(address) ? new URL(address) : []));
}
