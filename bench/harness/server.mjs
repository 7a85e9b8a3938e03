// One server variant in a process of its own, and what the harness asks of it.
import { PinnedProcess, SERVER_CORE, answerParent } from './pinned-process.mjs';

const warmUp = new URL('warm-next-tick.mjs', import.meta.url).href;

/**
 * Starts a variant: `{ name, file, args?, nodeFlags? }`, where `file` is a script that calls {@link serveOn}.
 * Resolves when it listens.
 */
export async function startServer({ name, file, args = [], nodeFlags = [] }, { node = process.execPath } = {}) {
  const child = new PinnedProcess(SERVER_CORE, node, ['--import', warmUp, ...nodeFlags, file, ...args]);
  const { port } = await child.ready;
  return {
    name,
    port,
    /** CPU time of the whole process so far, all threads, user and system; microseconds. */
    cpuUs: () => child.ask({ type: 'cpu' }),
    /** Asks a handler that the variant's script gave to {@link serveOn}. */
    ask: (type) => child.ask({ type }),
    stop: () => child.stop(),
  };
}

/** In the variant's script, once it listens on `port`. `handlers` answer further questions of the benchmark. */
export function serveOn(port, handlers = {}) {
  const cpu = () => {
    const { user, system } = process.cpuUsage();
    return user + system;
  };
  const rss = () => {
    globalThis.gc?.();
    return process.memoryUsage().rss;
  };
  answerParent({ cpu, rss, ...handlers }, { port });
}
