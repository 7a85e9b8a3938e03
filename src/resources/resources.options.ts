import type { MonotonicClock } from '../core/clock.js';
import { feature, object, optional, optionalNumber, string, value, type Resolved } from '../core/option.js';
import { bytes, duration } from '../core/shared-options.js';

/** Limits of the container that cannot be read from inside, and the interval of its records. */
export interface ResourcesOptions {
  /**
   * Milliseconds between two `ResourceRecord`s. Shorter than a second makes throttling coarse: the kernel counts it in
   * periods of 100 ms.
   * @default 10_000
   */
  intervalMs?: number;
  /** Cores. For containers whose limit cannot be seen from inside (Fargate, ECS tasks). Replaces the figure of the cgroup. */
  cpuLimitCores?: number;
  /** Cores. The CPU request, for example of the Downward API (`requests.cpu`): no cgroup has it reliably. Gives `requestUtilization`. */
  cpuRequestCores?: number;
  /** Bytes. For containers whose limit cannot be seen from inside. Replaces the figure of the cgroup. */
  memoryLimitBytes?: number;
}

const shape = {
  intervalMs: duration({ default: 10_000 }),
  cpuLimitCores: optionalNumber({ unit: 'a number of CPU cores' }),
  cpuRequestCores: optionalNumber({ unit: 'a number of CPU cores' }),
  memoryLimitBytes: optional(bytes()),
};

export const resourcesOption = feature(shape);

/** Rows of the options, without a switch. */
export const resourcesRows = object(shape);

/** Rows of the options and of a sampler's root path and clock. */
export const samplerRows = object({
  ...shape,
  root: string({ default: '/', what: 'a path' }),
  now: optional(
    value<MonotonicClock>('a function that returns monotonic milliseconds', (given) => typeof given === 'function'),
  ),
});

export type ResolvedResourcesOptions = Resolved<typeof resourcesRows>;
