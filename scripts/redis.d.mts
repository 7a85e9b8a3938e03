import type { ChildProcess } from 'node:child_process';

export interface RunningRedis {
  url: string;
  port: number;
  dir?: string;
  child: ChildProcess | null;
  stop(options?: { keepData?: boolean }): Promise<void>;
}
export function findRedisServer(): string | null;
export function ensureRedis(): void;
export function freePort(): Promise<number>;
export function startRedis(options?: {
  own?: boolean;
  appendOnly?: boolean;
  cluster?: boolean;
  port?: number;
  dir?: string;
}): Promise<RunningRedis>;
