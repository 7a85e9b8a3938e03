import type { AbstractHttpAdapter } from '@nestjs/core';

/**
 * Runs `work` when the HTTP server has closed: after the last response and before any provider's
 * `onApplicationShutdown` takes queues and databases away. Nest calls the adapter's `close` just there.
 */
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
