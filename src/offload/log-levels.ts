import { workerData } from 'node:worker_threads';
import { Logger, type LogLevel } from '@nestjs/common';

const LEVELS_DATA = 'nestjs-perf:log-levels';
/** Early Nest 11 has no list of them. */
const ALL: readonly LogLevel[] = ['verbose', 'debug', 'log', 'warn', 'error', 'fatal'];
/** Where Nest tells none, because none was chosen or nothing is to be logged: what nobody should miss. */
const LEAST: readonly LogLevel[] = ['warn', 'error', 'fatal'];

/** For the `workerData` of a thread: what this one logs. */
export function logLevelsData(): Record<string, readonly LogLevel[]> {
  const levels = ALL.filter((level) => Logger.isLevelEnabled(level));
  return { [LEVELS_DATA]: levels.length === 0 ? LEAST : levels };
}

/** In a worker: what the main thread logs. */
export const logLevels = (): LogLevel[] => (workerData as Record<string, LogLevel[]>)[LEVELS_DATA]!;
