// What one sample a second costs inside a server: caches are cold, unlike in a loop.
import { fileURLToPath } from 'node:url';
import { median, percentile, startLoad, startServer } from '../harness/index.mjs';

const file = fileURLToPath(new URL('service-server.mjs', import.meta.url));
const WARMUP_S = 2;

/** The server idle, and then another one under `ratePerS` requests a second. */
export async function inService({ seconds, ratePerS, node }) {
  return [await oneServer('idle', 0, seconds, node), await oneServer('busy', ratePerS, seconds, node)];
}

async function oneServer(name, ratePerS, seconds, node) {
  const server = await startServer({ name, file }, { node });
  const load = ratePerS === 0 ? null : await startLoad();
  try {
    const { port } = server;
    const durationMs = (WARMUP_S + seconds + 1) * 1_000;
    const loaded = load?.rate({ port, connections: 20, ratePerS, durationMs, request: { path: '/users/1' } });
    await new Promise((resolve) => setTimeout(resolve, WARMUP_S * 1_000));
    const cpuBeforeUs = await server.cpuUs();
    const times = await server.ask('record', { seconds });
    const cpuRatio = ((await server.cpuUs()) - cpuBeforeUs) / (seconds * 1e6);
    await loaded;
    return row(name, ratePerS, seconds, cpuRatio, times);
  } finally {
    await load?.stop();
    await server.stop();
  }
}

function row(server, ratePerS, seconds, cpuRatio, times) {
  const us = (name) => Number(median(times[name]).toFixed(1));
  const low = (name) => Number(percentile(Float64Array.from(times[name]).sort(), 0.1).toFixed(1));
  const total = [...times.watch, ...times.record].reduce((sum, each) => sum + each, 0);
  return {
    server,
    ratePerS,
    samples: times.sample.length,
    /** Of one core, all threads of the server, the requests included. */
    cpuRatio: Number(cpuRatio.toFixed(3)),
    sampleUs: us('sample'),
    readFileSyncUs: us('read'),
    ratio: Number((median(times.sample) / median(times.read)).toFixed(2)),
    /** Of the tenth of calls that were disturbed least: a virtual machine's time is taken away in small pieces that no clock shows. */
    sampleP10Us: low('sample'),
    readFileSyncP10Us: low('read'),
    control: Number((median(times.readAgain) / median(times.read)).toFixed(2)),
    recordUs: us('record'),
    /** Every turn of the feature's timers: low memory each second (with a limit), a baseline each five, a record each ten. */
    featurePercentOfACore: Number((total / seconds / 1e4).toFixed(4)),
    samplePercentOfACore: Number((median(times.sample) / 1e4).toFixed(4)),
  };
}
