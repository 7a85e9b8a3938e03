import { workerData } from 'node:worker_threads';
import { Logger, type LogLevel } from '@nestjs/common';

const LEVELS_DATA = 'nestjs-perf:log-levels';
/** All levels: early Nest 11 has no list of them. */
const ALL: readonly LogLevel[] = ['verbose', 'debug', 'log', 'warn', 'error', 'fatal'];
/** Levels where Nest enables none, because none was chosen or logging is off: messages that must not be missed. */
const LEAST: readonly LogLevel[] = ['warn', 'error', 'fatal'];

/** Returns the levels of this thread, for the `workerData` of a worker. */
export function logLevelsData(): Record<string, readonly LogLevel[]> {
  const levels = ALL.filter((level) => Logger.isLevelEnabled(level));
  return { [LEVELS_DATA]: levels.length === 0 ? LEAST : levels };
}

/** Returns the levels of the main thread, in a worker. */
export const logLevels = (): LogLevel[] => (workerData as Record<string, LogLevel[]>)[LEVELS_DATA]!;
