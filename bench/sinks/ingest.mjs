// Statsig's endpoints, answering with success and nothing else, in a process of their own.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';

const SPECS = JSON.stringify({ has_updates: true, time: 1, feature_gates: [], dynamic_configs: [], layer_configs: [] });
const self = fileURLToPath(import.meta.url);

export async function startIngest() {
  const child = fork(self);
  const [port] = await once(child, 'message');
  return { api: `http://127.0.0.1:${port}/v1`, stop: () => child.kill() };
}

if (process.argv[1] === self) {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.end(request.method === 'GET' ? SPECS : '{"success":true}'));
  });
  server.listen(0, '127.0.0.1', () => process.send(server.address().port));
  process.on('disconnect', () => process.exit());
}
