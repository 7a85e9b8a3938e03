// A cgroup of the benchmark's own (v1, as root): a parent, and below it the leaf that a process joins.
import { accessSync, constants, existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';

const CONTROLLERS = ['cpu', 'cpuacct', 'memory'];
const rootOf = (controller) => `/sys/fs/cgroup/${controller}`;

/** Whether cgroups can be made here. */
export function canMakeCgroups() {
  try {
    for (const controller of CONTROLLERS) {
      accessSync(`${rootOf(controller)}/cgroup.procs`, constants.W_OK);
      accessSync(rootOf(controller), constants.W_OK);
    }
    return process.getuid?.() === 0;
  } catch {
    return false;
  }
}

export class LimitedCgroup {
  #name = `nestjs-perf-bench-${process.pid}`;

  constructor() {
    for (const controller of CONTROLLERS) mkdirSync(this.leaf(controller), { recursive: true });
    writeFileSync(`${this.parent('cpu')}/cpu.shares`, '262144');
  }

  parent(controller) {
    return `${rootOf(controller)}/${this.#name}`;
  }

  leaf(controller) {
    return `${this.parent(controller)}/leaf`;
  }

  /** `where` is 'parent' or 'leaf'. */
  limit(where, cores, memoryBytes) {
    writeFileSync(`${this[where]('cpu')}/cpu.cfs_quota_us`, String(cores * 100_000));
    writeFileSync(`${this[where]('memory')}/memory.limit_in_bytes`, String(memoryBytes));
  }

  /** Shell commands by which a process joins; `hidden` then mounts the leaf over the tree, as a container sees it. */
  joinScript({ hidden = false } = {}) {
    const join = CONTROLLERS.map((controller) => `echo $$ > ${this.leaf(controller)}/cgroup.procs`);
    const mounts = CONTROLLERS.map((controller) => `mount --bind ${this.leaf(controller)} ${rootOf(controller)}`);
    return [...join, ...(hidden ? mounts : [])].join(' && ');
  }

  async remove() {
    for (const directory of CONTROLLERS.flatMap((controller) => [this.leaf(controller), this.parent(controller)])) {
      for (let attempt = 0; existsSync(directory); attempt++) {
        try {
          rmdirSync(directory);
        } catch (error) {
          if (attempt > 100) throw error;
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      }
    }
  }
}
