import type { Server } from 'node:http';
import type { AbstractHttpAdapter } from '@nestjs/core';

/** Runs `work` after the last response, before any `onApplicationShutdown`: Nest calls the adapter's `close` there. */
export function afterServerClosed(adapter: AbstractHttpAdapter, work: () => Promise<void>): void {
  const close = adapter.close.bind(adapter) as () => Promise<void>;
  adapter.close = async () => {
    try {
      await close();
    } finally {
      await work();
    }
  };
}

/** Calls `warn` once the server listens, in a process that SIGTERM would kill on the spot. */
export function whenUnprotected(adapter: AbstractHttpAdapter, warn: () => void): void {
  const server = adapter.getHttpServer() as Server;
  server.once('listening', () => {
    // main.ts may call it right after `await app.listen()`.
    setImmediate(() => {
      if (process.listenerCount('SIGTERM') === 0) warn();
    });
  });
}

/** Node's `close()` waits for clients that ask again and again on a kept connection: the next answer ends it. */
export function endKeptConnections(adapter: AbstractHttpAdapter): void {
  const server = adapter.getHttpServer() as Server;
  server.prependListener('request', ({ httpVersionMajor }, response) => {
    if (httpVersionMajor === 1) response.setHeader('connection', 'close');
  });
}
