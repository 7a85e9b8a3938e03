// The load generator's process: closed-loop bursts and open-loop runs against one port at a time.
import { HttpConnection, prepareRequest } from './http-connection.mjs';
import { answerParent } from './pinned-process.mjs';
import { percentile } from './statistics.mjs';

/** Connections stay open between bursts, so that no burst pays for handshakes. */
const pools = new Map();

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

  add(error, status, bodyBytes, ms) {
    this.ended += 1;
    if (error !== null) this.errors[error.message] = (this.errors[error.message] ?? 0) + 1;
    else {
      this.statuses[status] = (this.statuses[status] ?? 0) + 1;
      this.bodyBytes += bodyBytes;
      this.latencies.push(ms);
    }
  }

  result(elapsedMs, raw) {
    const sorted = Float64Array.from(this.latencies).sort();
    const [p50, p90, p99, max] = [0.5, 0.9, 0.99, 1].map((q) => percentile(sorted, q));
    const { statuses, errors, bodyBytes, ended } = this;
    const latencyMs = { p50, p90, p99, max };
    return {
      requests: ended,
      statuses,
      errors,
      bodyBytes,
      elapsedMs,
      latencyMs,
      ...(raw && { latenciesMs: this.latencies }),
    };
  }
}

/**
 * Closed loop: every connection sends its next request when it has the response to the last, `requests` in all.
 * Spins meanwhile: a client that sleeps has to be woken, and the server's `send` pays for that, the more often the slower the
 * server is. Over a network nobody pays it.
 */
async function burst({ port, connections, requests, request, raw }) {
  const prepared = [request].flat().map(prepareRequest);
  const pool = await connectionsTo(port, connections);
  const tally = new Tally();
  let sent = 0;
  let spinning = true;
  const spin = () => spinning && setImmediate(spin);
  spin();
  const startedMs = performance.now();
  await new Promise((resolve) => {
    const next = (connection) => {
      if (sent === requests || connection.closed) return tally.ended === sent && resolve();
      const sentMs = performance.now();
      connection.send(prepared[sent++ % prepared.length], (error, status, bytes) => {
        tally.add(error, status, bytes, performance.now() - sentMs);
        next(connection);
      });
    };
    pool.forEach(next);
  });
  spinning = false;
  return tally.result(performance.now() - startedMs, raw);
}

/**
 * Open loop: a request is due every 1/`ratePerS` s, whether the server keeps up or not. Latency counts from when it was
 * due, so a stalled server cannot hide the requests that it kept from being sent (coordinated omission).
 */
async function rate({ port, connections, ratePerS, durationMs, request, raw }) {
  const prepared = [request].flat().map(prepareRequest);
  const idle = await connectionsTo(port, connections);
  const tally = new Tally();
  const total = Math.floor((ratePerS * durationMs) / 1000);
  const startedMs = performance.now();
  let sent = 0;
  await new Promise((resolve) => {
    const sendDue = () => {
      const due = Math.min(total, Math.floor(((performance.now() - startedMs) * ratePerS) / 1000) + 1);
      while (sent < due && idle.length > 0) {
        const connection = idle.pop();
        const dueMs = startedMs + (sent * 1000) / ratePerS;
        connection.send(prepared[sent++ % prepared.length], (error, status, bytes) => {
          tally.add(error, status, bytes, performance.now() - dueMs);
          if (!connection.closed) idle.push(connection);
          if (tally.ended === total) resolve();
        });
      }
      if (idle.length === 0 && tally.ended === sent) resolve();
      // Spins: a timer's millisecond would be seen in the latencies, and this process has its core for itself.
      else if (sent < total) setImmediate(sendDue);
    };
    sendDue();
  });
  return { ...tally.result(performance.now() - startedMs, raw), due: total };
}

answerParent(
  {
    burst,
    rate,
    forget() {
      for (const pool of pools.values()) for (const connection of pool) connection.close();
      pools.clear();
    },
  },
  {},
);
