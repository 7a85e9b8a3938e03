// Bursts of all variants, interleaved: the method behind every comparison of this project.
import { startLoad } from './load.mjs';
import { startServer } from './server.mjs';
import { median } from './statistics.mjs';

/** So many generations are tried for each one that is wanted; a machine that needs more cannot measure. */
const TRIES = 4;
/**
 * Share of the base's requests per second at which latency is compared. A request that comes alone wakes the process and takes
 * up to three times the CPU of one in a burst: at 0.4 a bare server is so near its limit that p99 compares queues.
 */
const RATE_SHARE = 0.2;
/**
 * A server idles while the others have their turn: V8 then shrinks the heap of some, throws their optimised code away with it, and
 * they take up to twice the CPU until it is compiled again. A server under load keeps both.
 */
const STAY_WARM = '--no-memory-reducer';

/**
 * Measures `variants` (see `startServer`) against the first of them, the base.
 * The second, the control, must be the same as the base: it is the noise floor, and a generation in which the two differ by
 * more than `--max-control-error` (median CPU per request) is discarded, counted and repeated.
 *
 * In each generation all variants run at the same time in fresh processes, idle but for their own bursts; a round gives
 * each one burst, in an order drawn anew, in which none follows itself: it would look cheaper than it is.
 * They are started in a drawn order as well: the first of six stays 3 % dearer than the last. Options:
 *
 * - `burstMs`: a burst is what its variant answers in so many milliseconds, not `--burst` requests
 * - `warmupMs`: so long at the most, however few of the `--warmup` requests were answered
 * - `warmupConnections`: while warming up, where few connections to a slow handler would leave its code cold
 * - `atOneRate`: p50 and p99 are those of requests that come at 20 % of what the base can do, the same rate for all, in
 *   `--rate-phases` interleaved phases of `--rate-ms`
 * - `settle(server, requests)`: what a burst has to wait for before its CPU time is read
 *
 * Returns `{ discarded: [controlRatio], generations: [{ bursts: { [name]: [burst] }, latency: { [name]: [phase] } }] }`.
 * A burst is `{ cpuUs, requestsPerS, p50Ms, p99Ms, bodyBytes }`: `cpuUs` is whole-process CPU time per request.
 */
export async function runInterleaved(variants, flags, { log = console.error, ...options } = {}) {
  const [base, control] = variants;
  const load = await startLoad();
  const kept = { discarded: [], generations: [] };
  try {
    for (let attempt = 1; kept.generations.length < flags.generations; attempt++) {
      const rounds = share(flags.rounds, flags.generations, kept.generations.length);
      const generation = await runGeneration(variants, { ...flags, rounds }, load, options);
      const ratio = median(pairedRatios(generation, control.name, base.name, 'cpuUs'));
      const confirmed = Math.abs(ratio - 1) <= flags.maxControlError;
      if (confirmed) kept.generations.push(generation);
      else kept.discarded.push(ratio);
      const said = `control ${ratio.toFixed(3)}${confirmed ? '' : ', discarded'}`;
      log(`generation ${kept.generations.length}/${flags.generations}: ${said}`);
      if (attempt === flags.generations * TRIES && kept.generations.length < flags.generations) {
        const limit = `${flags.maxControlError * 100} %`;
        throw new Error(
          `${kept.discarded.length} of ${attempt} runs had a control off by > ${limit}. The machine is busy.`,
        );
      }
    }
  } finally {
    await load.stop();
  }
  return kept;
}

/** Ratios of one generation, round by round. */
export const pairedRatios = ({ bursts }, name, baseName, quantity) =>
  bursts[name].map((burst, round) => burst[quantity] / bursts[baseName][round][quantity]);

async function runGeneration(variants, flags, load, { request = { path: '/' }, settle, ...options }) {
  const servers = [];
  try {
    const startOrder = drawOrder(variants.keys());
    for (const index of startOrder) {
      const { nodeFlags = [], ...variant } = variants[index];
      servers[index] = await startServer({ ...variant, nodeFlags: [STAY_WARM, ...nodeFlags] }, flags);
    }
    const burst = (index, requests, connections = flags.connections) =>
      measureBurst(servers[index], load, requests, { connections, request, settle });
    const { warmupConnections = flags.connections } = options;
    const sizes = [];
    for (const index of startOrder) {
      await warmUp((requests) => burst(index, requests, warmupConnections), flags, options);
      const { requestsPerS } = await burst(index, flags.connections * 5);
      const filling = Math.max(flags.connections, Math.round((requestsPerS * options.burstMs) / 1000));
      sizes[index] = options.burstMs === undefined ? flags.burst : filling;
    }
    const bursts = Object.fromEntries(variants.map(({ name }) => [name, []]));
    for (let round = 0, order = []; round < flags.rounds; round++) {
      order = drawOrder(servers.keys(), order.at(-1));
      for (const index of order) bursts[variants[index].name].push(await burst(index, sizes[index]));
    }
    const latency = {};
    const phases = options.atOneRate === true ? flags.ratePhases : 0;
    const ratePerS = RATE_SHARE * median(bursts[variants[0].name].map(({ requestsPerS }) => requestsPerS));
    for (let phase = 0, order = []; phase < phases; phase++) {
      order = drawOrder(servers.keys(), order.at(-1));
      for (const index of order) {
        const target = { port: servers[index].port, connections: flags.connections, request };
        const { latencyMs, requests } = await load.rate({ ...target, ratePerS, durationMs: flags.rateMs });
        await settle?.(servers[index], requests);
        (latency[variants[index].name] ??= []).push({ ratePerS, p50Ms: latencyMs.p50, p99Ms: latencyMs.p99 });
      }
    }
    return { bursts, latency };
  } finally {
    await load.forget();
    await Promise.all(servers.map((server) => server?.stop()));
  }
}

/** Ever larger bursts, so that no single one outlasts `warmupMs` by much. */
async function warmUp(burst, { warmup }, { warmupMs = Infinity }) {
  const startedMs = performance.now();
  for (let sent = 0, size = 100; sent < warmup && performance.now() - startedMs < warmupMs; sent += size, size *= 2) {
    await burst(size);
  }
}

/** One burst, and what it cost the server's process. */
async function measureBurst(server, load, requests, { connections, request, settle }) {
  const before = await server.cpuUs();
  const { elapsedMs, latencyMs, bodyBytes } = await load.burst({ port: server.port, connections, requests, request });
  await settle?.(server, requests);
  return {
    cpuUs: ((await server.cpuUs()) - before) / requests,
    requestsPerS: (requests * 1000) / elapsedMs,
    p50Ms: latencyMs.p50,
    p99Ms: latencyMs.p99,
    bodyBytes: bodyBytes / requests,
  };
}

/** `all` in a random order that does not begin with `last`: nothing follows itself from one round to the next. */
function drawOrder(all, last) {
  const order = [...all];
  for (let i = order.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  if (order[0] === last && order.length > 1) order.push(order.shift());
  return order;
}

/** `total` divided over `parts`; the first ones take the rest. */
function share(total, parts, index) {
  return Math.floor(total / parts) + (index < total % parts ? 1 : 0);
}
