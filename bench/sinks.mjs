// sinks: CPU per request of each sink, against a sink that does nothing with the same records.
//
//   npm run bench -- sinks                           the published run
//   npm run bench -- sinks --rounds 12 --generations 2 --only statsig
//
// What would make the numbers lie:
// - The figures are the whole process's CPU, so they hold what the vendors' SDKs do in their own threads and timers:
//   compressing and posting events, exporting, scraping. Statsig's ingest runs in a process of its own.
// - A burst is shorter than the ten seconds that events wait at the most, so posts fall on the burst that fills a batch.
//   Over many rounds that evens out; a single round says nothing.
// - Prometheus and OpenTelemetry cost per scrape and export, not per request: both happen once a second here, and every
//   15 to 60 seconds in production.
// - Requests of one route and one status: more series cost more per scrape, export and rollup, not per request.
import { fileURLToPath } from 'node:url';
import { benchmark, readFlags } from './harness/index.mjs';
import { startIngest } from './sinks/ingest.mjs';

const file = fileURLToPath(new URL('sinks/server.mjs', import.meta.url));
const ingest = await startIngest();
const variant = (name, which) => ({ name, file, args: [which], env: { STATSIG_API: ingest.api } });

try {
  await benchmark(
    'sinks',
    [
      variant('a sink that does nothing', 'nothing'),
      variant('a sink that does nothing again', 'nothing'),
      variant('loggerSink', 'logger'),
      variant('prometheusSink, scraped every second', 'prometheus'),
      variant('openTelemetrySink, exported every second', 'opentelemetry'),
      variant('statsigSink, rollup', 'statsig-rollup'),
      variant('statsigSink, a tenth of the requests', 'statsig-tenth'),
      variant('statsigSink, each request', 'statsig-each'),
    ],
    readFlags(),
    { request: { path: '/users/42' } },
  );
} finally {
  ingest.stop();
}
