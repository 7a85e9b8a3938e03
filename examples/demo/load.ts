// The visitors: a process of its own, so that what it spends is not measured as the application's.
import { Agent, request } from 'node:http';

const [port, seconds] = process.argv.slice(2).map(Number) as [number, number];
const agent = new Agent({ keepAlive: true, maxSockets: 60 });
const endsAt = Date.now() + seconds * 1_000;
let sent = 0;
let answered = 0;

function call(method: string, path: string, order?: unknown): Promise<void> {
  sent += 1;
  return new Promise((resolve) => {
    const payload = order === undefined ? undefined : JSON.stringify(order);
    const body = payload === undefined ? {} : { 'content-type': 'application/json', 'content-length': payload.length };
    // A few users do most: squared, a random number is small more often.
    const headers = {
      ...body,
      'accept-encoding': 'br, gzip',
      'x-user': `user-${Math.floor(Math.random() ** 2 * 120)}`,
    };
    const outgoing = request({ host: '127.0.0.1', port, method, path, headers, agent }, (response) => {
      response.resume();
      response.once('end', () => {
        answered += 1;
        resolve();
      });
    });
    outgoing.once('error', () => resolve());
    outgoing.end(payload);
  });
}

const visitors: (() => Promise<void>)[] = [
  () => call('GET', '/flights'),
  () => call('GET', `/flights/NPF${1000 + Math.floor(Math.random() * 6_000)}`),
  () => call('POST', '/orders', { item: 'headset' }),
  () => call('GET', `/search/${Math.random() < 0.001 ? 'rare' : 'ils'}-${Math.floor(Math.random() * 1_000)}`),
  () => call('GET', '/payments/status'),
  () => call('GET', `/reports/${Math.floor(Math.random() * 100)}?token=secret`),
  () => call('GET', `/wp-admin/${Math.random().toString(36).slice(2)}`),
];
const weights = [0.04, 0.3, 0.25, 0.3, 0.06, 0.001, 0.049];

function pick(): () => Promise<void> {
  let left = Math.random();
  return visitors.find((_, index) => (left -= weights[index]!) <= 0) ?? visitors[0]!;
}

async function visit(): Promise<void> {
  while (Date.now() < endsAt) {
    await pick()();
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 40));
  }
}

const progress = setInterval(() => process.send?.({ sent, answered, leftMs: Math.max(0, endsAt - Date.now()) }), 200);
await Promise.all(Array.from({ length: 40 }, visit));
clearInterval(progress);
agent.destroy();
process.send?.({ sent, answered, leftMs: 0 });
process.disconnect();
