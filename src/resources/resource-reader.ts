import type { MonotonicClock } from '../core/clock.js';
import { CgroupAccounts, type ResourceReading } from './cgroup-accounts.js';
import { discoverCgroups } from './cgroup/discovery.js';
import { type KernelFile, KernelFiles } from './kernel/kernel-file.js';
import type { SchedulingReading } from './scheduling-history.js';

/** Mounts, affinity and files that could not be read are looked at again after this time, at about 0.3 ms. */
const REDISCOVER_EVERY_MS = 30_000;

/** Reads the accounts of whatever cgroup the process is in now. Shared by readers that each keep their own baseline. */
export class ResourceReader {
  private readonly root: string;
  private readonly files: KernelFiles;
  /** Null until the first read, so that a reader nobody uses opens nothing. */
  private found: FoundCgroup | null = null;

  constructor(
    root: string,
    private readonly now: MonotonicClock,
  ) {
    this.root = root.replace(/\/+$/, '');
    this.files = new KernelFiles(this.root, this.root === '');
  }

  read(): ResourceReading {
    const reading = this.current().accounts.read(this.now);
    // The cgroup was removed between the two looks: the next one is read at once.
    return this.files.gone ? this.discover().accounts.read(this.now) : reading;
  }

  /**
   * Memory that is left at the least: one short file for each limit that {@link read} has seen. Does not look whether the
   * process was moved.
   */
  memoryLeftBytes(): number | null {
    const found = this.found === null || this.files.gone ? this.discover() : this.found;
    return found.accounts.memoryLeftBytes();
  }

  /** The part of {@link read} that tells of lost time. */
  scheduling(): SchedulingReading {
    return this.current().accounts.scheduling(this.now);
  }

  /** Gives back every descriptor. Reading goes on to work, at the price of opening the files each time. */
  close(): void {
    this.files.close();
  }

  /**
   * A kept descriptor of a cgroup that the process has left goes on to answer, with figures that no longer change, and
   * fails only once that cgroup is removed. So the membership itself is compared, each time.
   */
  private current(): FoundCgroup {
    const { found } = this;
    if (found === null || this.files.gone) return this.discover();
    const isOld = this.now() - found.atMs >= REDISCOVER_EVERY_MS;
    return isOld || found.membershipFile.read() !== found.membership ? this.discover() : found;
  }

  private discover(): FoundCgroup {
    this.files.release();
    const membershipFile = this.files.file('/proc/self/cgroup');
    this.found = {
      atMs: this.now(),
      membershipFile,
      membership: membershipFile.read(),
      accounts: new CgroupAccounts(discoverCgroups(this.root), this.root, this.files),
    };
    return this.found;
  }
}

interface FoundCgroup {
  atMs: number;
  membershipFile: KernelFile;
  membership: string | null;
  accounts: CgroupAccounts;
}
