/** Paths of OTLP over HTTP (https://opentelemetry.io/docs/specs/otlp/#otlphttp-request) and of the Datadog agent's intake. */
const PATHS = /^\/(v1\/(traces|metrics|logs)|v0\.\d\/traces|telemetry\/proxy\/.*)(\?|$)/;
/** OTLP's and the Datadog agent's ports. */
const PORTS = /:(4317|4318|8126)$/;
/** Where Statsig's SDKs post events and ask for configurations. */
const HOSTS = /(^|\.)(statsigapi\.net|prodregistryv2\.org|featureassets\.org|statsigcdn\.com)(:\d+)?$/;

/** Whether a call belongs to the telemetry of the process, and not to its work. */
export const isExporter = (host: string, path: string): boolean =>
  PATHS.test(path) || PORTS.test(host) || HOSTS.test(host);
