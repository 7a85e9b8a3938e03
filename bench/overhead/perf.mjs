// This library: `latency` (everything else off, records to the default logger sink), `records` (a sink that takes every
// request's record) or `default`.
import { PerfModule, PerfService } from 'nestjs-perf';
import { serveApi } from './application.mjs';

const LATENCY_ONLY = { eventLoop: false, resources: false, compression: false, defer: false };
let recorded = 0;
const countingSink = {
  name: 'counting',
  publish(records) {
    recorded += records.length;
  },
};
const OPTIONS = {
  latency: LATENCY_ONLY,
  records: { ...LATENCY_ONLY, sinks: [countingSink] },
  default: undefined,
};
const [which] = process.argv.slice(2);

await serveApi({
  imports: [PerfModule.forRoot(OPTIONS[which])],
  check(app) {
    if (which === 'default') return;
    // A feature that came later and is on by default would silently be measured as well.
    const { eventLoop, resources, defer, compression } = app.get(PerfService).snapshot();
    const on = Object.entries({ eventLoop, resources, defer, compression }).filter(([, value]) => value !== null);
    if (on.length > 0) throw new Error(`"latency only" has more on: ${on.map(([name]) => name).join(', ')}.`);
  },
});
