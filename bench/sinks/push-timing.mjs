// Time from the end of a response to when its record is in the recorder's buffer, with and without a sink.
import { fileURLToPath } from 'node:url';
import { MAX_CONTROL_ERROR } from '../harness/interleaved.mjs';
import { environment, median, medianWithInterval, startServer } from '../harness/index.mjs';

const file = fileURLToPath(new URL('push-server.mjs', import.meta.url));
const REQUESTS = 400;
const WARMUP = 2_000;
const TRIES = 4;
const rounded = (number) => Number(number.toFixed(3));

/**
 * Compares `variants` (`{ name, sink }`) with the first, the base; the second is the same once more. In each generation one
 * fresh process has an application for every variant and asks them in turn; the order is reversed every other round. A
 * generation whose control differs from the base by more than 5 % is discarded, counted and repeated.
 */
export async function measurePush(variants, flags, env) {
  const where = environment();
  const generations = [];
  const discardedRuns = [];
  let nodeVersion = null;
  while (generations.length < flags.generations) {
    if (discardedRuns.length >= flags.generations * (TRIES - 1)) {
      throw new Error(`${discardedRuns.length} runs had a control off by > 5 %. The machine is busy.`);
    }
    const args = variants.map(({ sink }) => sink);
    const server = await startServer({ name: 'push', file, args, env }, flags);
    nodeVersion = server.nodeVersion;
    try {
      const medians = await measureRounds(server, variants.length, Math.ceil(flags.rounds / flags.generations));
      const control = median(medians[1].map((us, round) => us / medians[0][round]));
      const kept = Math.abs(control - 1) <= MAX_CONTROL_ERROR;
      if (kept) generations.push(medians);
      else discardedRuns.push(rounded(control));
      console.error(
        `push, generation ${generations.length}/${flags.generations}: control ${control.toFixed(3)}${kept ? '' : ', discarded'}`,
      );
    } finally {
      await server.stop();
    }
  }
  return {
    name: 'sinks-push',
    ...where,
    node: nodeVersion,
    options: { rounds: flags.rounds, generations: flags.generations, requests: REQUESTS, warmup: WARMUP },
    discardedRuns,
    base: variants[0].name,
    control: variants[1].name,
    rows: variants.map(({ name }, index) => {
      const added = medianWithInterval(generations.map((medians) => medians[index].map((us, i) => us - medians[0][i])));
      return {
        name,
        endToPushUs: rounded(median(generations.flatMap((medians) => medians[index]))),
        addedUs: { median: rounded(added.median), low: rounded(added.low), high: rounded(added.high) },
      };
    }),
  };
}

async function measureRounds(server, count, rounds) {
  const order = Array.from({ length: count }, (_, index) => index);
  const medians = order.map(() => []);
  for (const index of order) await server.ask('push', { index, requests: WARMUP });
  for (let round = 0; round < rounds; round++) {
    for (const index of order) medians[index].push(await server.ask('push', { index, requests: REQUESTS }));
    order.reverse();
  }
  return medians;
}

export function pushTable({ rows, options, discardedRuns, command }) {
  const lines = rows.map(({ name, endToPushUs, addedUs: { median, low, high } }) => {
    return `| ${name} | ${endToPushUs.toFixed(2)} | ${median.toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)}) |`;
  });
  return (
    `| beside a sink that does nothing | end of the response to push, µs | added, µs (95 %) |\n|---|---:|---:|\n${lines.join('\n')}\n\n` +
    `Median of ${options.rounds} interleaved rounds of ${options.requests} requests, one at a time, over ${options.generations} process generations. ` +
    `${discardedRuns.length} noisy runs discarded. \`${command}\`.`
  );
}
