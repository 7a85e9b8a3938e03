// spill: what `spillPath` costs a request: milliseconds until its data is on disk, and CPU, by how many arrive together.
//
//   npm run bench -- spill
//
// What would make the numbers lie: the disk. fdatasync on a laptop's SSD, a cloud volume and a RAM disk differ a hundredfold;
// run it on yours. In-process, without HTTP: add these milliseconds to a response, they are not hidden.
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Spill } from '../dist/defer/spill/spill.js';
import { environment, median, percentile } from './harness/index.mjs';

const ROUNDS = 200;
// In the working folder: the system's temporary one may be in memory, where nothing is synced.
const folder = mkdtempSync(join(process.cwd(), '.spill-bench-'));
const spill = new Spill({ path: folder, maxBytes: 1024 ** 3 });
await spill.open((_, message) => console.error(message));
let count = 0;
const entry = () => ({
  id: `bench-${(count++).toString(36)}`,
  work: 'SendReceipt',
  name: 'SendReceipt',
  json: JSON.stringify({ orderId: 'o-1', email: 'ada@example.org', total: 99 }),
  requestId: 'request-1',
  route: '/orders',
  traceparent: null,
  timeoutMs: 30_000,
  attempts: 3,
  together: null,
  at: Date.now(),
  options: { queue: null, backoffMs: 1_000, maxBackoffMs: 60_000, delayMs: 0, priority: 0 },
});

const rows = [];
try {
  for (const together of [1, 10, 100, 1_000]) {
    const latencies = [];
    const cpu = [];
    for (let round = 0; round < ROUNDS + 20; round++) {
      const entries = Array.from({ length: together }, entry);
      const before = process.cpuUsage();
      const startedMs = performance.now();
      const places = await Promise.all(entries.map((one) => spill.append(one)));
      const ms = performance.now() - startedMs;
      spill.strike(places);
      const { user, system } = process.cpuUsage(before);
      if (round < 20) continue;
      latencies.push(ms);
      cpu.push((user + system) / together);
    }
    const sorted = latencies.toSorted((a, b) => a - b);
    rows.push({ together, p50Ms: percentile(sorted, 0.5), p99Ms: percentile(sorted, 0.99), cpuUsPerJob: median(cpu) });
  }
} finally {
  await spill.close();
  rmSync(folder, { recursive: true, force: true });
}
for (const { together, p50Ms, p99Ms, cpuUsPerJob } of rows) {
  console.log(
    `${together} at a time: on disk after ${p50Ms.toFixed(2)} ms (p99 ${p99Ms.toFixed(2)}), ` +
      `${((p50Ms * 1000) / together).toFixed(1)} µs and ${cpuUsPerJob.toFixed(1)} µs of CPU a job`,
  );
}
console.log(JSON.stringify({ name: 'spill', ...environment(), rows }));
