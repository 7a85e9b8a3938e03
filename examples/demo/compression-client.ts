// Visitors of the feed: `<port> <visitors> <polls>`. Counts the bytes that come over the wire; decodes nothing.
import { Agent, get } from 'node:http';

const [port, visitors, polls] = process.argv.slice(2).map(Number) as [number, number, number];
const agent = new Agent({ keepAlive: true, maxSockets: visitors });
const headers = { 'accept-encoding': 'gzip, deflate, br, zstd' };
const latenciesMs: number[] = [];
let bytes = 0;

function poll(): Promise<void> {
  const startedMs = performance.now();
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path: '/flights', headers, agent }, (response) => {
      response.on('data', (chunk: Buffer) => (bytes += chunk.byteLength));
      response.once('error', reject);
      response.once('end', () => {
        latenciesMs.push(performance.now() - startedMs);
        resolve();
      });
    }).once('error', reject);
  });
}

await poll();
[bytes, latenciesMs.length] = [0, 0];
await Promise.all(
  Array.from({ length: visitors }, async () => {
    for (let i = 0; i < polls; i++) await poll();
  }),
);
agent.destroy();
latenciesMs.sort((a, b) => a - b);
const quantile = (q: number): number => latenciesMs[Math.ceil(q * latenciesMs.length) - 1]!;
process.send?.({ bytes: Math.round(bytes / latenciesMs.length), p50Ms: quantile(0.5), p99Ms: quantile(0.99) }, () =>
  process.disconnect(),
);
