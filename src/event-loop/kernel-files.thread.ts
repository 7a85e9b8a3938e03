import type { KernelTexts } from '../ports/kernel-files.js';

/** Milliseconds since the start of the main thread: on a CPU, and in the run queue (0 where only the process's CPU time is known). */
export interface MainUsage {
  readonly cpuMs: number;
  readonly queuedMs: number;
}

/** Reads small files of the kernel. The sampler's thread runs this function's text (see sampler-source.ts): it uses nothing from outside. */
export function openKernelFiles(readRss: () => number) {
  const fs = process.getBuiltinModule('node:fs');
  const text = Buffer.alloc(96);
  let schedstatFd = -1;
  try {
    schedstatFd = fs.openSync(`/proc/${process.pid}/task/${process.pid}/schedstat`, 'r');
  } catch {
    // Only Linux has it.
  }
  return {
    readTexts(paths: readonly string[], atMs: number): KernelTexts {
      const [cpu, texts] = [process.cpuUsage(), new Map<string, string>()];
      for (const path of paths) {
        try {
          texts.set(path, fs.readFileSync(path, 'utf8'));
        } catch {
          texts.set(path, '');
        }
      }
      return { atMs, cpu, rssBytes: readRss(), texts };
    },
    /** The CPU time of the main thread, which cannot be read through Node from another one. */
    readMainUsage(): MainUsage {
      try {
        // "time on CPU, time in the run queue, slices", in nanoseconds: Documentation/scheduler/sched-stats.rst
        const length = fs.readSync(schedstatFd, text, 0, text.length, 0);
        const [cpu, queued] = text.toString('latin1', 0, length).split(' ');
        return { cpuMs: Number(cpu) / 1e6, queuedMs: Number(queued) / 1e6 };
      } catch {
        const { user, system } = process.cpuUsage();
        return { cpuMs: (user + system) / 1_000, queuedMs: 0 };
      }
    },
    close(): void {
      if (schedstatFd >= 0) fs.closeSync(schedstatFd);
    },
  };
}
