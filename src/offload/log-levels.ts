import { workerData } from 'node:worker_threads';
import { LOG_LEVELS, Logger, type LogLevel } from '@nestjs/common';

const LEVELS_DATA = 'nestjs-perf:log-levels';

/** For the `workerData` of a thread: what this one logs. Nest 11 tells no level where none was chosen: then it is all. */
export function logLevelsData(): Record<string, readonly LogLevel[]> {
  const levels = LOG_LEVELS.filter((level) => Logger.isLevelEnabled(level));
  return { [LEVELS_DATA]: levels.length === 0 ? LOG_LEVELS : levels };
}

/** In a worker: what the main thread logs. */
export const logLevels = (): LogLevel[] => (workerData as Record<string, LogLevel[]>)[LEVELS_DATA]!;
