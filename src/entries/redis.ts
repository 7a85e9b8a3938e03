export { redisHistory, type RedisHistoryOptions } from './redis/history.js';
