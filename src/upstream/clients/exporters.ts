/** Paths to which telemetry is posted: OTLP over HTTP (https://opentelemetry.io/docs/specs/otlp/#otlphttp-request) and Sentry. */
const POSTED = /(\/v1\/(traces|metrics|logs)|^\/api\/\d+\/envelope\/)(\?|$)/;
/** Of the Datadog agent's intake, on a port or a socket. */
const DATADOG = /^\/(v0\.\d\/(traces|stats|config)|telemetry\/proxy\/.*)(\?|$)/;
/** OTLP's and the Datadog agent's ports. */
const PORTS = /:(4317|4318|8126)$/;
/** Where Statsig's SDKs post events and ask for configurations. */
const HOSTS = /(^|\.)(statsigapi\.net|prodregistryv2\.org|featureassets\.org|statsigcdn\.com)(:\d+)?$/;

/** Whether a call belongs to the telemetry of the process, and not to its work. */
export const isExporter = (host: string, method: string, path: string): boolean =>
  (method === 'POST' && POSTED.test(path)) || DATADOG.test(path) || PORTS.test(host) || HOSTS.test(host);
