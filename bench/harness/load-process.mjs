// The load generator's process: closed-loop bursts and open-loop runs against one port at a time.
import { HttpConnection, prepareRequest } from './http-connection.mjs';
import { answerParent } from './pinned-process.mjs';
import { percentile } from './statistics.mjs';

/** Connections stay open between bursts, so that no burst pays for handshakes. */
const pools = new Map();

/** One for each of `paths`, which take turns. */
const prepareAll = ({ paths, ...request }) =>
  paths === undefined ? [prepareRequest(request)] : paths.map((path) => prepareRequest({ ...request, path }));

async function connectionsTo(port, count) {
  const pool = (pools.get(port) ?? []).filter((connection) => !connection.closed);
  while (pool.length < count) pool.push(new HttpConnection(port));
  pools.set(port, pool);
  await Promise.all(pool.map((connection) => connection.connected));
  return pool.slice(0, count);
}

/** Collects what the responses were. Latencies are milliseconds. */
class Tally {
  statuses = {};
  errors = {};
  bodyBytes = 0;
  latencies = [];
  ended = 0;
  startedMs = performance.now();

  add(error, status, bodyBytes, ms) {
    this.ended += 1;
    if (error !== null) this.errors[error.message] = (this.errors[error.message] ?? 0) + 1;
    else {
      this.statuses[status] = (this.statuses[status] ?? 0) + 1;
      this.bodyBytes += bodyBytes;
      this.latencies.push(ms);
    }
  }

  result() {
    const sorted = Float64Array.from(this.latencies).sort();
    const [p50, p90, p99, max] = [0.5, 0.9, 0.99, 1].map((q) => percentile(sorted, q));
    const { statuses, errors, bodyBytes, ended, startedMs } = this;
    const elapsedMs = performance.now() - startedMs;
    return { requests: ended, statuses, errors, bodyBytes, elapsedMs, latencyMs: { p50, p90, p99, max } };
  }
}

/**
 * Closed loop: every connection sends its next request when it has the response to the last, `requests` in all.
 * Spins meanwhile: a client that sleeps has to be woken, and the server's `send` would pay for that.
 */
async function burst({ port, connections, requests, request }) {
  const prepared = prepareAll(request);
  const pool = await connectionsTo(port, connections);
  const tally = new Tally();
  let sent = 0;
  let spinning = true;
  const spin = () => spinning && setImmediate(spin);
  spin();
  await new Promise((resolve) => {
    const next = (connection) => {
      if (sent === requests || connection.closed) return tally.ended === sent && resolve();
      const sentMs = performance.now();
      sent += 1;
      connection.send(prepared[sent % prepared.length], (error, status, bytes) => {
        tally.add(error, status, bytes, performance.now() - sentMs);
        next(connection);
      });
    };
    pool.forEach(next);
  });
  spinning = false;
  return tally.result();
}

/**
 * Open loop: a request is due every 1/`ratePerS` s, whether the server keeps up or not. Latency counts from when it was
 * due, so a stalled server cannot hide the requests that it kept from being sent (coordinated omission).
 */
async function rate({ port, connections, ratePerS, durationMs, request }) {
  const prepared = prepareAll(request);
  const idle = await connectionsTo(port, connections);
  const tally = new Tally();
  const due = Math.floor((ratePerS * durationMs) / 1000);
  let sent = 0;
  await new Promise((resolve) => {
    const sendDue = () => {
      const dueNow = Math.min(due, Math.floor(((performance.now() - tally.startedMs) * ratePerS) / 1000) + 1);
      while (sent < dueNow && idle.length > 0) {
        const connection = idle.pop();
        const dueMs = tally.startedMs + (sent * 1000) / ratePerS;
        sent += 1;
        connection.send(prepared[sent % prepared.length], (error, status, bytes) => {
          tally.add(error, status, bytes, performance.now() - dueMs);
          if (!connection.closed) idle.push(connection);
          if (tally.ended === due) resolve();
        });
      }
      if (idle.length === 0 && tally.ended === sent) resolve();
      // Spins: a timer's millisecond would be seen in the latencies, and this process has its core for itself.
      else if (sent < due) setImmediate(sendDue);
    };
    sendDue();
  });
  return { ...tally.result(), due };
}

function forget() {
  for (const pool of pools.values()) for (const connection of pool) connection.close();
  pools.clear();
}

answerParent({ burst, rate, forget }, {});
