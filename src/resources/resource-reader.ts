import type { MonotonicClock } from '../core/clock.js';
import type { SchedulingCounters } from '../core/scheduling.js';
import { CgroupAccounts, type ResourceReading } from './cgroup-accounts.js';
import { discoverCgroups } from './discovery.js';
import { type KernelFile, KernelFiles } from './kernel-file.js';

/** Mounts, affinity and files that could not be read are looked at again after this time, at about 0.3 ms. */
const REDISCOVER_EVERY_MS = 30_000;

/** Reads the accounts of whatever cgroup the process is in now. Shared by readers that each keep their own baseline. */
export class ResourceReader {
  private readonly root: string;
  private readonly files: KernelFiles;
  private membership: KernelFile;
  private knownMembership: string | null = null;
  private accounts: CgroupAccounts;
  private discoveredMs: number;

  constructor(
    root: string,
    private readonly now: MonotonicClock,
  ) {
    this.root = root.replace(/\/+$/, '');
    this.files = new KernelFiles(this.root, this.root === '');
    this.membership = this.files.file('/proc/self/cgroup');
    this.discoveredMs = now();
    this.accounts = this.discover();
  }

  read(): ResourceReading {
    this.keepUpToDate();
    const reading = this.accounts.read(this.now);
    if (!this.files.gone) return reading;
    this.accounts = this.discover();
    return this.accounts.read(this.now);
  }

  /** The cheap part of {@link read}: 3 to 5 files. */
  scheduling(): SchedulingCounters {
    return this.accounts.scheduling();
  }

  /** Gives back every descriptor. Reading goes on to work, at the price of opening the files each time. */
  close(): void {
    this.files.close();
  }

  private keepUpToDate(): void {
    const nowMs = this.now();
    if (!this.wasMoved() && nowMs - this.discoveredMs < REDISCOVER_EVERY_MS) return;
    this.discoveredMs = nowMs;
    this.accounts = this.discover();
  }

  /**
   * A kept descriptor of a cgroup that the process has left goes on to answer, with figures that no longer change, and
   * fails only once that cgroup is removed. So the membership itself is compared, each time.
   */
  private wasMoved(): boolean {
    return this.membership.read() !== this.knownMembership;
  }

  private discover(): CgroupAccounts {
    this.files.release();
    this.membership = this.files.file('/proc/self/cgroup');
    this.knownMembership = this.membership.read();
    return new CgroupAccounts(discoverCgroups(this.root), this.root, this.files);
  }
}
