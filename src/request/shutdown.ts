import type { Server } from 'node:http';
import { listenShared } from '../core/shared-listener.js';

interface ServerEnd {
  /** The server stops accepting. */
  readonly closing: () => void;
  /** Runs where requests keep the server open for longer. */
  readonly late: { readonly afterMs: number; work(): Promise<void> };
  /** Runs after the last response, before any `onApplicationShutdown`: there providers end their connections. */
  readonly closed: () => Promise<void>;
}

/** Nest has no hook between the last response and `onApplicationShutdown`. Adapters await the server's `close()`. */
export function afterServerClosed(server: Server, { closing, late, closed }: ServerEnd): void {
  const close = server.close.bind(server);
  server.close = (done) => {
    closing();
    const timer = setTimeout(() => void late.work(), late.afterMs).unref();
    return close((error) => {
      clearTimeout(timer);
      const finish = (): void => done?.(error);
      // `onApplicationShutdown` awaits the same promise and rejects with its error.
      // eslint-disable-next-line promise/no-promise-in-callback -- Node's `close()` returns no promise
      closed().then(finish, finish);
    });
  };
}

/** Calls back once the server listens: with false in a process that SIGTERM would kill on the spot. */
export function whenListening(server: Server, listening: (isProtected: boolean) => void): void {
  server.once('listening', () => {
    // main.ts may call it right after `await app.listen()`.
    setImmediate(() => listening(process.listenerCount('SIGTERM') > 0));
  });
}

/** Calls `leave` at the first SIGTERM, before Nest closes the application. Returns its removal: a listener that stays would keep the process alive. */
export function onTermination(leave: () => void): () => void {
  const ignore = listenShared(
    process,
    'SIGTERM',
    () => {
      ignore();
      leave();
    },
    'prependListener',
  );
  return ignore;
}

/** Node's `close()` waits for clients that send again and again on a kept connection: the next answer ends it. */
export function endKeptConnections(server: Server): void {
  server.prependListener('request', ({ httpVersionMajor }, response) => {
    if (httpVersionMajor === 1) response.setHeader('connection', 'close');
  });
}
