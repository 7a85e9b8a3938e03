// This library: `latency` (everything else off, records to the default logger sink), one further feature beside it
// (`event-loop`, `resources`, `compression`, `defer`), `records` (a sink that takes every request's record) or `default`.
import { PerfModule, PerfService } from 'nestjs-perf';
import { serveApi } from './application.mjs';

const LATENCY_ONLY = { eventLoop: false, resources: false, compression: false, defer: false };
function without(feature) {
  const { [feature]: _, ...off } = LATENCY_ONLY;
  return off;
}
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
  'event-loop': without('eventLoop'),
  resources: without('resources'),
  compression: without('compression'),
  defer: without('defer'),
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
    const allowed = which.replace('event-loop', 'eventLoop');
    const more = on.filter(([name]) => name !== allowed);
    if (more.length > 0) throw new Error(`"${which}" has more on: ${more.map(([name]) => name).join(', ')}.`);
  },
});
