/** A request that is sent over and over. */
export interface LoadRequest {
  method?: string;
  path?: string;
  /** Instead of `path`: they take turns. */
  paths?: readonly string[];
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
}

interface LoadTarget {
  port: number;
  connections: number;
  request: LoadRequest;
}

export interface Load {
  burst(options: LoadTarget & { requests: number }): Promise<LoadResult>;
  rate(options: LoadTarget & { ratePerS: number; durationMs: number }): Promise<LoadResult & { due: number }>;
  stop(): Promise<void>;
}

export interface Variant {
  name: string;
  file: string;
  args?: readonly string[];
}

export interface BenchmarkServer {
  port: number;
  stop(): Promise<void>;
}

export interface Run {
  discarded: number[];
  generations: {
    bursts: Record<string, { cpuUs: number }[]>;
    latency: Record<string, { ratePerS: number; p50Ms: number; p99Ms: number }[]>;
  }[];
}

export interface RunFlags {
  rounds: number;
  generations: number;
  burst: number;
  warmup: number;
  connections: number;
  rateMs: number;
  ratePhases: number;
  maxControlError: number;
}

export function startLoad(): Promise<Load>;
export function startServer(variant: Variant): Promise<BenchmarkServer>;
export function serveOn(port: number): void;
export function runInterleaved(
  variants: readonly Variant[],
  flags: RunFlags,
  options?: { atOneRate?: boolean; log?: (line: string) => void },
): Promise<Run>;
export function commandLine(argv?: readonly string[]): string;
export function medianWithInterval(generations: readonly (readonly number[])[]): {
  median: number;
  low: number;
  high: number;
};

/** Throws, and names the files, where a repository has uncommitted changes outside of bench/results. */
export function refuseUncommittedChanges(folder?: string): void;
/** Machine, time, commit and command of a run. */
export function environment(nodeVersion?: string): object;
export function readNodeMajor(node: string): number;
/** Writes bench/results/`name`.json. */
export function writeResult(result: { name: string; rows: readonly object[]; [about: string]: unknown }): void;
