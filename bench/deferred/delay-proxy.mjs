// A TCP proxy that holds every byte for a while in each direction: Redis in another data centre.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { fileURLToPath } from 'node:url';

/** Starts the proxy in a process of its own. */
export async function startDelayProxy(targetPort, delayMs) {
  const child = fork(fileURLToPath(import.meta.url), [String(targetPort), String(delayMs)]);
  const [port] = await once(child, 'message');
  return { port, stop: () => child.kill('SIGKILL') };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [targetPort, delayMs] = process.argv.slice(2).map(Number);
  const pipe = (from, to) => {
    from.setNoDelay(true);
    from.on('data', (chunk) => setTimeout(() => to.writable && to.write(chunk), delayMs));
    from.on('close', () => setTimeout(() => to.destroy(), delayMs));
    from.on('error', () => to.destroy());
  };
  const server = createServer((client) => {
    const target = connect(targetPort, '127.0.0.1');
    pipe(client, target);
    pipe(target, client);
  });
  server.listen(0, '127.0.0.1', () => process.send(server.address().port));
  process.on('disconnect', () => process.exit());
}
