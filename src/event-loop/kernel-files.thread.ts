/** Milliseconds since the start of the main thread: on a CPU, and in the run queue (0 where only the process's CPU time is known). */
export interface MainUsage {
  readonly cpuMs: number;
  readonly queuedMs: number;
}

/** Reads the CPU time of the main thread from another one, which runs this function's text (see sampler-source.ts): it uses nothing from outside. */
export function openMainUsage(): { read(): MainUsage; close(): void } {
  const fs = process.getBuiltinModule('node:fs');
  const text = Buffer.alloc(96);
  let schedstatFd = -1;
  try {
    schedstatFd = fs.openSync(`/proc/${process.pid}/task/${process.pid}/schedstat`, 'r');
  } catch {
    // Only Linux has it.
  }
  return {
    read() {
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
    close() {
      if (schedstatFd >= 0) fs.closeSync(schedstatFd);
    },
  };
}
