export { bullmqStore, type BullmqStoreOptions } from './bullmq/bullmq.store.js';
