export { bullmqStore, type BullmqDurableStore, type BullmqStoreOptions } from './bullmq/bullmq.store.js';
export type { RedisClient, RedisConnection } from './bullmq/connection.js';
