// An open page without a browser: asks for what the page's own script asks for. Ends with the server that started it.
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';

const [which, port] = process.argv.slice(2);
process.stdin.on('end', () => process.exit()).resume();

const EVERY_MS = 2_000;
const ASKS = {
  dashboard: () => '/perf/data',
  'swagger-stats': () => '/swagger-stats/stats?fields=timeline,lasterrors,longestreq,apistats',
};

if (which === 'express-status-monitor') {
  const { headers } = await fetch(`http://127.0.0.1:${port}/status`);
  if (!headers.get('content-type').startsWith('text/html')) throw new Error('There is no page at /status.');
  const socket = new WebSocket(`ws://127.0.0.1:${port}/socket.io/?EIO=3&transport=websocket`);
  socket.on('open', () => setInterval(() => socket.send('2'), 20_000));
  socket.on('error', (error) => {
    throw error;
  });
} else {
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}${ASKS[which]()}`);
    if (!response.ok) throw new Error(`${which} answers ${response.status}.`);
    await response.json();
    await delay(EVERY_MS);
  }
}
