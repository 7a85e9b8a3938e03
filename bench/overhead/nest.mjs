// Nest without or with this library: `<fastify|express> <bare or a name of OPTIONS>`.
import { PerfModule, PerfService } from 'nestjs-perf';
import { freePort } from '../../scripts/redis.mjs';
import { serveApi } from './application.mjs';

const OTHERS_OFF = {
  upstream: false,
  users: false,
  history: false,
  resources: false,
  compression: false,
  defer: false,
};
let recorded = 0;
const countingSink = {
  name: 'counting',
  publish(records) {
    recorded += records.length;
  },
};
const OPTIONS = {
  default: undefined,
  latency: { ...OTHERS_OFF, eventLoop: false },
  /** A sink that takes every request's record. */
  records: { ...OTHERS_OFF, eventLoop: false, sinks: [countingSink] },
  blocks: { ...OTHERS_OFF },
  witness: { eventLoop: { port: await freePort() } },
  work: { work: true },
};
const [adapter, which] = process.argv.slice(2);

/** A feature that came later and is on by default would silently be measured as well. */
function onlyAsAsked(app) {
  if (which === 'bare' || which === 'default') return;
  const on = Object.entries(app.get(PerfService).snapshot()).filter(
    ([, value]) => value !== null && value.length !== 0,
  );
  const unasked = on.map(([name]) => name).filter((name) => OPTIONS[which][name] === false);
  if (unasked.length > 0) throw new Error(`"${which}" has more on: ${unasked.join(', ')}.`);
}

await serveApi({
  express: adapter === 'express',
  imports: which === 'bare' ? [] : [PerfModule.forRoot(OPTIONS[which])],
  check: onlyAsAsked,
});
