// One server variant in a process of its own, and what the harness asks of it.
import { PinnedProcess, SERVER_CORE, answerParent } from './pinned-process.mjs';

const warmUp = new URL('warm-next-tick.mjs', import.meta.url).href;

/**
 * Starts a variant: `{ name, file, args?, env?, nodeFlags? }`, where `file` is a script that calls {@link serveOn}.
 * Resolves when it listens.
 */
export async function startServer(variant, { node = process.execPath, nodeFlags = [] } = {}) {
  const args = ['--import', warmUp, ...nodeFlags, ...(variant.nodeFlags ?? []), variant.file, ...(variant.args ?? [])];
  const child = new PinnedProcess(SERVER_CORE, node, args, variant.env);
  const { port, version } = await child.ready;
  return {
    name: variant.name,
    port,
    nodeVersion: version,
    pid: child.pid,
    /** CPU time of the whole process so far, all threads, user and system; microseconds. */
    cpuUs: () => child.ask({ type: 'cpu' }),
    /** `process.memoryUsage()`, after a full collection where the process runs with --expose-gc. */
    memory: () => child.ask({ type: 'memory' }),
    /** Asks a handler that the variant's script gave to {@link serveOn}. */
    ask: (type, message = {}) => child.ask({ ...message, type }),
    stop: () => child.stop(),
  };
}

/** In the variant's script, once it listens on `port`. `handlers` answer further questions of the benchmark. */
export function serveOn(port, handlers = {}) {
  const own = {
    cpu() {
      const { user, system } = process.cpuUsage();
      return user + system;
    },
    memory() {
      globalThis.gc?.();
      return process.memoryUsage();
    },
  };
  answerParent({ ...own, ...handlers }, { port, version: process.version });
}
