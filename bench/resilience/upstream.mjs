// The upstream, a process of its own: answers after `afterMs`, `/now` at once. Messages set how it behaves: { afterMs, broken }.
import { createServer } from 'node:http';

let behaviour = { afterMs: 20, broken: false };
const server = createServer(({ url }, response) => {
  if (behaviour.broken) response.destroy();
  else setTimeout(() => response.end('{"answer":42}'), url === '/now' ? 0 : behaviour.afterMs);
});
process.on('message', (message) => (behaviour = message));
server.listen(Number(process.argv[2]), '127.0.0.1', () => process.send(server.address().port));
process.on('disconnect', () => process.exit());
