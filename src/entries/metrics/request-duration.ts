/** Names and buckets of the request histogram, the same for both vocabularies. */
export const REQUEST_DURATION = {
  name: 'http.server.request.duration',
  unit: 's',
  help: 'Duration of completed HTTP requests, to the end of the response.',
  prometheus: 'http_server_request_duration_seconds',
} as const;

/** Seconds. The buckets that OpenTelemetry's HTTP conventions advise. */
export const REQUEST_BOUNDS_SECONDS: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
];
