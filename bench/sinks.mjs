// sinks: CPU per request of each sink, against a sink that does nothing with the same records, and what each adds before the record is pushed.
//
//   npm run bench -- sinks                           the published run
//   npm run bench -- sinks --rounds 12 --generations 2 --only statsig
//   npm run bench -- sinks --part push               only the time from the end of a response to the push of its record
//
// What would make the numbers lie:
// - The figures are the whole process's CPU, so they hold what the vendors' SDKs do in their own threads and timers:
//   compressing and posting events, exporting, scraping. Statsig's ingest runs in a process of its own.
// - A burst is shorter than the ten seconds that events wait at the most, so posts fall on the burst that fills a batch.
//   Over many rounds that evens out; a single round says nothing.
// - Prometheus and OpenTelemetry cost per scrape and export, not per request: both happen once a second here, and every
//   15 to 60 seconds in production.
// - The time to the push is a micro-benchmark: server and client share a process and a thread, one request at a time, so
//   that nothing but the sink differs and no other request's work falls between. It is no latency that a client sees.
// - Requests of one route and one status: more series cost more per scrape, export and rollup, not per request.
import { fileURLToPath } from 'node:url';
import { benchmark, readFlags, writeResult } from './harness/index.mjs';
import { startIngest } from './sinks/ingest.mjs';
import { measurePush, pushTable } from './sinks/push-timing.mjs';

const file = fileURLToPath(new URL('sinks/server.mjs', import.meta.url));
const SINKS = [
  { name: 'a sink that does nothing', sink: 'nothing' },
  { name: 'a sink that does nothing again', sink: 'nothing' },
  { name: 'loggerSink', sink: 'logger' },
  { name: 'prometheusSink, scraped every second', sink: 'prometheus' },
  { name: 'openTelemetrySink, exported every second', sink: 'opentelemetry' },
  { name: 'statsigSink, rollup', sink: 'statsig-rollup' },
  { name: 'statsigSink, a tenth of the requests', sink: 'statsig-tenth' },
  { name: 'statsigSink, each request', sink: 'statsig-each' },
];

const flags = readFlags({ part: { type: 'string', default: 'cpu,push' } });
const parts = flags.part.split(',');
const ingest = await startIngest();
const env = { STATSIG_API: ingest.api };

try {
  if (parts.includes('cpu')) {
    const variants = SINKS.map(({ name, sink }) => ({ name, file, args: [sink], env }));
    await benchmark('sinks', variants, flags, { request: { path: '/users/42' } });
  }
  if (parts.includes('push')) {
    const result = await measurePush(SINKS, flags, env);
    if (flags.write) writeResult(result);
    console.log(pushTable(result));
  }
} finally {
  ingest.stop();
}
