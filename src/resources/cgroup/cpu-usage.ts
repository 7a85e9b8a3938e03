import type { ControllerCgroup } from './discovery.js';
import type { KernelFile, KernelFiles } from '../kernel/kernel-file.js';
import { lineNumber, seconds } from '../kernel/kernel-text.js';

/** CPU time since the cgroup (or the process) was made. */
export interface CpuUsageReading {
  /** Counters of one source cannot be compared with those of another. */
  from: 'cgroup' | 'process';
  usageSeconds: number;
  userSeconds: number | null;
  systemSeconds: number | null;
}

/** Reads the CPU time of a cgroup; null when the kernel does not say. */
export type CpuUsage = () => CpuUsageReading | null;

export function cpuUsageOf(files: KernelFiles, { version, directories }: ControllerCgroup): CpuUsage {
  return version === 'v1' ? usageV1(files, directories[0]!) : usageV2(files, directories[0]!);
}

function usageV2(files: KernelFiles, directory: string): CpuUsage {
  const stat = files.file(`${directory}/cpu.stat`);
  return () => {
    const text = stat.read();
    if (text === null) return null;
    const line = (key: string): number | null => seconds(lineNumber(text, key), 1e6);
    return reading(line('usage_usec'), line('user_usec'), line('system_usec'));
  };
}

/** `cpuacct.usage` is exact (nanoseconds); `cpuacct.stat` counts 10 ms ticks and serves only where the split is not there. */
function usageV1(files: KernelFiles, directory: string): CpuUsage {
  const usage = files.file(`${directory}/cpuacct.usage`);
  const user = files.file(`${directory}/cpuacct.usage_user`);
  const system = files.file(`${directory}/cpuacct.usage_sys`);
  const stat = files.file(`${directory}/cpuacct.stat`);
  return () => {
    const exactSeconds = seconds(usage.number(), 1e9);
    let userSeconds = seconds(user.number(), 1e9);
    let systemSeconds = seconds(system.number(), 1e9);
    if (userSeconds === null || systemSeconds === null) {
      userSeconds = ticksToSeconds(stat, 'user');
      systemSeconds = ticksToSeconds(stat, 'system');
    }
    const sum = userSeconds === null || systemSeconds === null ? null : userSeconds + systemSeconds;
    return reading(exactSeconds ?? sum, userSeconds, systemSeconds);
  };
}

/** USER_HZ, the unit of `cpuacct.stat`, is 100 on every architecture that Node runs on. */
function ticksToSeconds(stat: KernelFile, key: string): number | null {
  const text = stat.read();
  return text === null ? null : seconds(lineNumber(text, key), 100);
}

/** A running process has used CPU, so 0 is a stub (gVisor) and not a measurement. */
function reading(
  usageSeconds: number | null,
  userSeconds: number | null,
  systemSeconds: number | null,
): CpuUsageReading | null {
  return usageSeconds === null || usageSeconds === 0
    ? null
    : { from: 'cgroup', usageSeconds, userSeconds, systemSeconds };
}
