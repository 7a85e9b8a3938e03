// All variants in one process, one after the other: the method for differences that are smaller than what two processes
// of the same program differ by.
import { drawOrder, keepConfirmed, measureBurst, share } from './interleaved.mjs';
import { startLoad } from './load.mjs';
import { startServer } from './server.mjs';

/**
 * At most so many requests before the burst: what a new application has made has to be compiled, which a server does once in its
 * life, and its detector has to start. With 10,000 the library looked 2 % dearer on Node 20 in one comparison; and in its first
 * second the detector does not know yet how little of a large young generation lives, and has collections observed (Node 24).
 */
const SETTLING = 150_000;

/**
 * Measures `variants` (`{ name, … }`, plain data for the server) as `runInterleaved` does, with the same result, but in each
 * generation all of them in one process: `file` is a script that answers `open` (with a variant, gives a port) and `close`.
 * A round opens each variant in an order drawn anew, settles it, gives it one burst and closes it, so that nothing of one
 * runs in the burst of another.
 *
 * Processes of one program differ by 5 % and more for as long as they live (what was compiled when, and where it lies in
 * memory). Here the program around the variants is the same one. The luck of each variant's own code stays, some percent in
 * one process: several are needed.
 */
export async function runInOneProcess(file, variants, flags, { request = { path: '/' }, log = console.error } = {}) {
  const [base, control] = variants;
  return keepConfirmed(base, control, flags, log, (index) => {
    const rounds = share(flags.rounds, flags.generations, index);
    return runGeneration(file, variants, { ...flags, rounds }, request);
  });
}

async function runGeneration(file, variants, flags, request) {
  const load = await startLoad();
  const server = await startServer({ name: 'one process', file }, flags);
  try {
    const { connections } = flags;
    const burst = (port, requests) => measureBurst(server, load, { port, connections, requests, request });
    const turn = async (index, settling) => {
      const port = await server.ask('open', { variant: variants[index] });
      await burst(port, settling);
      const measured = await burst(port, flags.burst);
      // Before the server closes: it waits for its connections.
      await load.forget();
      await server.ask('close');
      return measured;
    };
    const settling = Math.min(SETTLING, flags.warmup);
    const all = [...variants.keys()];
    for (const index of drawOrder(all)) await turn(index, flags.warmup);
    const bursts = Object.fromEntries(variants.map(({ name }) => [name, []]));
    for (let round = 0; round < flags.rounds; round++) {
      for (const index of drawOrder(all)) bursts[variants[index].name].push(await turn(index, settling));
    }
    return { nodeVersion: server.nodeVersion, bursts };
  } finally {
    await server.stop();
    await load.stop();
  }
}
