export { redisCache, type RedisCacheOptions } from './redis/redis-cache.js';
export type { RedisCacheClient, RedisCacheConnection } from './redis/connection.js';
export { redisHistory, type RedisHistoryOptions } from './redis/history/redis-history.js';
