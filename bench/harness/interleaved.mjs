// Bursts of all variants, interleaved: the method behind every overhead figure of this project.
import { startLoad } from './load.mjs';
import { startServer } from './server.mjs';
import { median } from './statistics.mjs';

/** A generation whose control differs from its twin by more than this is noise, not a measurement. */
export const MAX_CONTROL_ERROR = 0.05;
/** So many generations are tried for each one that is wanted; a machine that needs more cannot measure. */
const TRIES = 4;

/**
 * Measures `variants` (see `startServer`; a variant may have its own `request`, `burst` and `warmup`) against the first of them, the base. The
 * second, the control, must be the same as the base: it is the noise floor, and a generation in which the two differ by
 * more than 5 % (median CPU per request) is discarded, counted and repeated.
 *
 * In each generation all variants run at the same time in fresh processes, idle but for their own bursts; a round gives
 * each one burst, in an order drawn anew, in which none follows itself: the one whose code and data are still in the caches
 * would look some percent cheaper than it is. They are started in a drawn order as well: the first of six stays 3 % dearer
 * than the last. Returns
 * `{ nodeVersion, discarded: [controlRatio], generations: [{ [name]: [burst] }] }`, where a burst is
 * `{ cpuUs, requestsPerS, p50Ms, p99Ms, bodyBytes }`, `cpuUs` being whole-process CPU time per request.
 */
export async function runInterleaved(variants, flags, { request = { path: '/' }, log = console.error } = {}) {
  const [base, control] = variants;
  const load = await startLoad();
  try {
    return await keepConfirmed(base, control, flags, log, (index) =>
      runGeneration(variants, flags, load, request, share(flags.rounds, flags.generations, index)),
    );
  } finally {
    await load.stop();
  }
}

/** Runs generations until enough have a control that confirms their base. `runOne` gives `{ nodeVersion, bursts }`. */
export async function keepConfirmed(base, control, flags, log, runOne) {
  const generations = [];
  const discarded = [];
  let nodeVersion = null;
  for (let attempt = 1; generations.length < flags.generations; attempt++) {
    if (attempt > flags.generations * TRIES) {
      throw new Error(`${discarded.length} of ${attempt - 1} runs had a control off by > 5 %. The machine is busy.`);
    }
    const generation = await runOne(generations.length);
    nodeVersion = generation.nodeVersion;
    const ratio = median(pairedRatios(generation.bursts, control.name, base.name, 'cpuUs'));
    const kept = Math.abs(ratio - 1) <= MAX_CONTROL_ERROR;
    if (kept) generations.push(generation.bursts);
    else discarded.push(ratio);
    log(
      `generation ${generations.length}/${flags.generations}: control ${ratio.toFixed(3)}${kept ? '' : ', discarded'}`,
    );
  }
  return { nodeVersion, discarded, generations };
}

/** One burst, and what it cost the server's process. */
export async function measureBurst(server, load, target) {
  const before = await server.cpuUs();
  const { elapsedMs, latencyMs, bodyBytes } = await load.burst(target);
  const cpuUs = ((await server.cpuUs()) - before) / target.requests;
  const requestsPerS = (target.requests * 1000) / elapsedMs;
  return { cpuUs, requestsPerS, p50Ms: latencyMs.p50, p99Ms: latencyMs.p99, bodyBytes };
}

/** Ratios of one generation, round by round. */
export function pairedRatios(bursts, name, baseName, quantity) {
  return bursts[name].map((burst, round) => burst[quantity] / bursts[baseName][round][quantity]);
}

async function runGeneration(variants, flags, load, defaultRequest, rounds) {
  const servers = [];
  try {
    const startOrder = drawOrder(variants.keys());
    for (const index of startOrder) servers[index] = await startServer(variants[index], flags);
    const burst = (index, requests) => {
      const { request = defaultRequest } = variants[index];
      const [server, { connections }] = [servers[index], flags];
      return measureBurst(server, load, { port: server.port, connections, requests, request });
    };
    for (const index of startOrder) await burst(index, variants[index].warmup ?? flags.warmup);
    const bursts = Object.fromEntries(variants.map(({ name }) => [name, []]));
    let order = [];
    for (let round = 0; round < rounds; round++) {
      order = drawOrder([...servers.keys()], order.at(-1));
      for (const index of order)
        bursts[variants[index].name].push(await burst(index, variants[index].burst ?? flags.burst));
    }
    await load.forget();
    return { nodeVersion: servers[0].nodeVersion, bursts };
  } finally {
    await Promise.all(servers.map((server) => server?.stop()));
  }
}

/** `all` in a random order that does not begin with `last`: nothing follows itself from one round to the next. */
export function drawOrder(all, last) {
  const order = [...all];
  for (let i = order.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  if (order[0] === last && order.length > 1) order.push(order.shift());
  return order;
}

/** `total` divided over `parts`; the first ones take the rest. */
export function share(total, parts, index) {
  return Math.floor(total / parts) + (index < total % parts ? 1 : 0);
}
