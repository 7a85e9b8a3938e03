import { PerfError } from '../../core/perf.error.js';
import { isClient, type RedisConnection } from './connection.js';

export type Bullmq = typeof import('bullmq');

/**
 * BullMQ, loaded at boot rather than with this module, so that its absence can be said in words.
 * @throws PERF_ERR_MISSING_PEER
 */
export async function importBullmq(connection: RedisConnection): Promise<Bullmq> {
  let bullmq: Bullmq;
  try {
    bullmq = await import('bullmq');
  } catch (error) {
    throw missingPeer(error);
  }
  // BullMQ 6 brings no Redis client along, and tells so only in the background.
  if (!isClient(connection) && 'createPostgresBackend' in bullmq) {
    try {
      await import('ioredis');
    } catch (error) {
      throw missingPeer(error);
    }
  }
  return bullmq;
}

function missingPeer(error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') return error;
  return new PerfError(
    'PERF_ERR_MISSING_PEER',
    '`bullmqStore()` needs the packages bullmq and ioredis, which are not installed. Run: npm install bullmq ioredis',
    { cause: error },
  );
}
