import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** The scope in which a pid means one process: this host and PID namespace, since this boot. */
export function describePlace(): string {
  const read = (readOne: () => string): string => {
    try {
      return readOne().trim();
    } catch {
      return '-';
    }
  };
  const boot = read(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'));
  const namespace = read(() => readlinkSync('/proc/self/ns/pid'));
  return `${hostname()}/${boot}/${namespace}`;
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
