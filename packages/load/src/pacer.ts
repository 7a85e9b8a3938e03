import { Worker } from 'node:worker_threads';

/** Sleeps far more exactly than timers, which count whole milliseconds; and a busy main thread does not make it late. */
const PROGRAM = `
const { parentPort, workerData: { flag } } = require('node:worker_threads');
parentPort.once('message', ({ startNs, offsetsMs }) => {
  for (let next = 0; next < offsetsMs.length; ) {
    const nowMs = Number(process.hrtime.bigint() - startNs) / 1e6;
    if (offsetsMs[next] > nowMs) {
      Atomics.wait(flag, 0, 0, offsetsMs[next] - nowMs);
      if (Atomics.load(flag, 0) !== 0) break;
      continue;
    }
    while (next < offsetsMs.length && offsetsMs[next] <= nowMs) next += 1;
    parentPort.postMessage(next);
  }
});
parentPort.postMessage(0);
`;

/** Of one run: time since its start. */
export interface Pace {
  nowMs(): number;
  /** No more starts. */
  cancel(): void;
}

/**
 * Calls `start` for each of the offsets (ascending milliseconds) when its time has come. Resolves after the last one.
 */
export async function pace(offsetsMs: Float64Array, start: (index: number, pace: Pace) => void): Promise<Pace> {
  const flag = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(PROGRAM, { eval: true, workerData: { flag } });
  let startNs = 0n;
  const own: Pace = {
    nowMs: () => Number(process.hrtime.bigint() - startNs) / 1e6,
    cancel() {
      Atomics.store(flag, 0, 1);
      Atomics.notify(flag, 0);
      done();
    },
  };
  let done = (): void => {};
  let ready = false;
  let started = 0;
  try {
    await new Promise<void>((resolve, reject) => {
      done = resolve;
      worker.once('error', reject);
      worker.on('message', (due: number) => {
        if (!ready) {
          ready = true;
          startNs = process.hrtime.bigint() + 5_000_000n;
          worker.postMessage({ startNs, offsetsMs });
          if (offsetsMs.length === 0) resolve();
          return;
        }
        while (started < due && Atomics.load(flag, 0) === 0) {
          started += 1;
          start(started - 1, own);
        }
        if (started === offsetsMs.length) resolve();
      });
    });
  } finally {
    await worker.terminate();
  }
  return own;
}

/** So many starts a second, evenly. */
export function evenly(ratePerSecond: number, forMs: number): Float64Array {
  const count = Math.max(1, Math.round((ratePerSecond * forMs) / 1_000));
  return Float64Array.from({ length: count }, (_, i) => (i * 1_000) / ratePerSecond);
}
