// The load generator as the benchmark sees it: a separate process on a core of its own.
import { fileURLToPath } from 'node:url';
import { LOAD_CORE, PinnedProcess } from './pinned-process.mjs';

const file = fileURLToPath(new URL('load-process.mjs', import.meta.url));

/**
 * Starts the load generator. Each call gives `{ requests, statuses, errors, bodyBytes, elapsedMs, latencyMs }`.
 * `request` is `{ method, path, headers, body }`; `paths` instead of `path` take turns.
 */
export async function startLoad() {
  const child = new PinnedProcess(LOAD_CORE, process.execPath, [file]);
  await child.ready;
  return {
    /** Closed loop: `{ port, connections, requests, request }`. */
    burst: (options) => child.ask({ ...options, type: 'burst' }).then(allAnswered),
    /** Open loop: `{ port, connections, ratePerS, durationMs, request }`; `connections` is the most at one time. */
    rate: (options) => child.ask({ ...options, type: 'rate' }).then(allAnswered),
    /** Closes all connections: before servers are replaced. */
    forget: () => child.ask({ type: 'forget' }),
    stop: () => child.stop(),
  };
}

/** A benchmark of failing requests measures something else. */
function allAnswered(result) {
  const { statuses, errors } = result;
  const bad = Object.keys(statuses).filter((status) => !/^[23]/.test(status));
  if (bad.length === 0 && Object.keys(errors).length === 0) return result;
  throw new Error(`Requests failed: statuses ${JSON.stringify(statuses)}, errors ${JSON.stringify(errors)}.`);
}
