import { readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { PerfError } from '../../core/perf.error.js';

/**
 * Keeps two processes out of one spill file: `<file>.lock` holds who owns it. A lock whose process has ended, by crash
 * or SIGKILL, is taken over.
 * @throws PERF_ERR_STORE when a living process holds it
 */
export function lockSpill(file: string): () => void {
  const lock = `${file}.lock`;
  const me = identify(process.pid);
  for (;;) {
    try {
      writeFileSync(lock, me, { flag: 'wx', mode: 0o600 });
      return () => unlinkSync(lock);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const owner = readFileSync(lock, 'utf8');
    const pid = Number.parseInt(owner, 10);
    if (owner !== '' && Number.isInteger(pid) && identify(pid) === owner) {
      throw new PerfError(
        'PERF_ERR_STORE',
        `\`spillPath\` is in use by process ${pid}, but each process needs a file of its own. ` +
          'Give every worker of a cluster its own path, the same one at each of its starts.',
      );
    }
    unlinkSync(lock);
  }
}

/** A pid with its start time: pids are used again, in containers even at each start. */
function identify(pid: number): string {
  try {
    // Field 22 of /proc/<pid>/stat, in clock ticks since boot; the command in field 2 may hold spaces.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return `${pid} ${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`;
  } catch {
    return isAlive(pid) ? `${pid} alive` : `${pid} gone`;
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
