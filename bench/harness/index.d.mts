/** A request that is sent over and over. */
export interface LoadRequest {
  method?: string;
  path?: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
}

export interface LoadResult {
  requests: number;
  statuses: Record<string, number>;
  errors: Record<string, number>;
  bodyBytes: number;
  elapsedMs: number;
  latencyMs: { p50: number; p90: number; p99: number; max: number };
  latenciesMs?: number[];
}

interface LoadTarget {
  port: number;
  connections: number;
  request: LoadRequest | readonly LoadRequest[];
  raw?: boolean;
}

export interface Load {
  burst(options: LoadTarget & { requests: number }): Promise<LoadResult>;
  rate(options: LoadTarget & { ratePerS: number; durationMs: number }): Promise<LoadResult & { due: number }>;
  forget(): Promise<void>;
  stop(): Promise<void>;
}

export interface Variant {
  name: string;
  file: string;
  args?: readonly string[];
  env?: Record<string, string>;
  nodeFlags?: readonly string[];
  request?: LoadRequest | readonly LoadRequest[];
}

export interface BenchmarkServer {
  name: string;
  port: number;
  nodeVersion: string;
  pid: number;
  cpuUs(): Promise<number>;
  memory(): Promise<NodeJS.MemoryUsage>;
  ask(type: string, message?: object): Promise<unknown>;
  stop(): Promise<void>;
}

export interface Burst {
  cpuUs: number;
  requestsPerS: number;
  p50Ms: number;
  p99Ms: number;
  bodyBytes: number;
}

export interface RunFlags {
  rounds: number;
  generations: number;
  burst: number;
  warmup: number;
  connections: number;
  node?: string;
  nodeFlags?: readonly string[];
}

export interface Interval {
  median: number;
  low: number;
  high: number;
}

export function startLoad(): Promise<Load>;
export function startServer(
  variant: Variant,
  options?: { node?: string; nodeFlags?: readonly string[] },
): Promise<BenchmarkServer>;
export function serveOn(port: number, handlers?: Record<string, (message: never) => unknown>): void;
export function runInterleaved(
  variants: readonly Variant[],
  flags: RunFlags,
  options?: { request?: LoadRequest | readonly LoadRequest[]; log?: (line: string) => void },
): Promise<{ nodeVersion: string; discarded: number[]; generations: Record<string, Burst[]>[] }>;
export function runInOneProcess(
  file: string,
  variants: readonly { name: string }[],
  flags: RunFlags,
  options?: { request?: LoadRequest | readonly LoadRequest[]; log?: (line: string) => void },
): Promise<{ nodeVersion: string; discarded: number[]; generations: Record<string, Burst[]>[] }>;
export function commandLine(argv?: readonly string[]): string;
export function median(numbers: readonly number[]): number;
export function medianWithInterval(generations: readonly (readonly number[])[]): Interval;
