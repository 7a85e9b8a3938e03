import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { Cgroup, whyNoCgroups } from '../fixtures/cgroups/cgroup-lab.js';
import { SampledChild } from '../fixtures/cgroups/sampled-child.js';

const MIB = 2 ** 20;
const skipped = whyNoCgroups();
if (skipped !== null) console.log(`Real cgroups are not tested here: ${skipped}.`);

/** Longer windows make the comparison finer; throttling comes in periods of 100 ms. */
const BURN_MS = process.env['PERF_LONG'] === undefined ? 1_500 : 6_000;

/** Looks at a counter from outside of the cgroup, every few milliseconds, on the clock that processes share. */
class IndependentReader {
  private readonly series: { atNs: number; value: number }[] = [];
  private readonly timer: NodeJS.Timeout;
  private readonly look: () => void;

  constructor(path: string) {
    this.look = () => {
      const value = Number(readFileSync(path, 'utf8'));
      this.series.push({ atNs: Number(process.hrtime.bigint()), value });
    };
    this.look();
    this.timer = setInterval(this.look, 2);
  }

  /** Mean rate of the counter between two moments, its value at each interpolated. */
  rate(fromNs: bigint, toNs: bigint): number {
    this.look();
    return (this.at(Number(toNs)) - this.at(Number(fromNs))) / Number(toNs - fromNs);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private at(ns: number): number {
    const after = this.series.findIndex(({ atNs }) => atNs >= ns);
    const [a, b] = [this.series[Math.max(0, after - 1)]!, this.series[after]!];
    return b === a ? a.value : a.value + ((b.value - a.value) * (ns - a.atNs)) / (b.atNs - a.atNs);
  }
}

// Each test starts a Node process and lets the kernel throttle or kill it, which takes periods of 100 ms: 1 to 4 s each.
describe.skipIf(skipped !== null)('a process in real cgroups (v1, hybrid)', { timeout: 120_000 + BURN_MS }, () => {
  let groups: Cgroup[] = [];
  let children: SampledChild[] = [];
  const group = (label: string): Cgroup => {
    const made = new Cgroup(label);
    groups.push(made);
    return made;
  };
  const child = (...how: [before?: string, wrapper?: string]): SampledChild => {
    const made = new SampledChild(join(inject('compiledFixtures'), 'cgroups/sampled-process.js'), ...how);
    children.push(made);
    return made;
  };

  afterEach(async () => {
    for (const each of children) await each.end();
    for (const each of groups) await each.remove();
    children = [];
    groups = [];
  });

  it('reads cores, throttling and limits that are set on the parent as the kernel has them', async () => {
    const own = group('half');
    own.limit('parent', { cores: 0.5, memoryBytes: 256 * MIB });
    const busy = child();
    own.join(busy.pid);
    await busy.order({ do: 'watch', intervalMs: 200 });
    await busy.order({ do: 'burn', ms: 200, busyMs: 10, everyMs: 10 });
    const reader = new IndependentReader(`${own.leaf('cpuacct')}/cpuacct.usage`);
    const stat = `${own.parent('cpu')}/cpu.stat`;
    try {
      const compare = async () => {
        const before = await busy.sample();
        await busy.order({ do: 'burn', ms: BURN_MS, busyMs: 10, everyMs: 10 });
        const after = await busy.sample();
        const share = after.sample.cpu.window!.usageCores / reader.rate(before.atNs, after.atNs);
        return { share, ...after.sample };
      };
      let { share, limits, cpu } = await compare();
      // A busy machine may hold one of the two up between a counter and its clock; a wrong reading is wrong each time.
      for (let tries = 1; tries < 5 && Math.abs(share - 1) >= 0.02; tries++) ({ share, limits, cpu } = await compare());
      expect(limits).toMatchObject({
        version: 'hybrid',
        source: 'cgroup',
        trust: 'exact',
        cpuCores: 0.5,
        memoryBytes: 256 * MIB,
        byAncestor: { cpu: true, memory: true },
      });
      expect(share).toBeGreaterThan(0.98);
      expect(share).toBeLessThan(1.02);
      expect(cpu.window!.utilization).toBeCloseTo(cpu.window!.usageCores / 0.5, 9);

      // Once it idles the counters stand still, so that both must read the same.
      await new Promise((resolve) => setTimeout(resolve, 250));
      const idle = await busy.sample();
      expect(idle.sample.cpu.throttledPeriods).toBe(own.number(stat, 'nr_throttled'));
      expect(idle.sample.cpu.throttledSeconds).toBe(own.number(stat, 'throttled_time') / 1e9);
      expect(cpu.window!.throttledRatio).toBeGreaterThan(0);
      expect(cpu.window!.throttledByHiddenAncestor).toBe(false);
      expect(cpu.window!.runQueueMs).toBeGreaterThan(0.05 * cpu.window!.ms);
    } finally {
      reader.stop();
    }
  });

  it('sees no throttling at half of the limit', async () => {
    const own = group('idle');
    own.limit('parent', { cores: 0.5 });
    const calm = child();
    own.join(calm.pid);
    await calm.order({ do: 'burn', ms: 300, busyMs: 5, everyMs: 20 });
    await calm.sample();
    await calm.order({ do: 'burn', ms: BURN_MS / 2, busyMs: 5, everyMs: 20 });
    const { cpu } = (await calm.sample()).sample;
    expect(cpu.window).toMatchObject({ throttledPeriods: 0, throttledRatio: 0, throttledMs: 0 });
    expect(cpu.window!.periods).toBeGreaterThan(2);
  });

  it('tells of a parent’s limit that a sibling uses up, though its own is lower', async () => {
    const own = group('pod');
    own.limit('parent', { cores: 0.6 });
    own.limit('leaf', { cores: 0.5 });
    const [sampled, sibling] = [child(), child()];
    own.join(sampled.pid);
    own.join(sibling.pid, 'parent');
    await sampled.sample();
    await Promise.all(
      [sampled, sibling].map((each) => each.order({ do: 'burn', ms: BURN_MS, busyMs: 10, everyMs: 10 })),
    );
    const { limits, cpu } = (await sampled.sample()).sample;
    expect(limits).toMatchObject({ cpuCores: 0.5, byAncestor: { cpu: false } });
    expect(cpu.window!.throttledPeriods).toBeGreaterThan(cpu.throttledPeriods!);
    expect(cpu.window!.throttledRatio).toBeGreaterThan(0.25);
  });

  it('notices that it was moved, and outlives the cgroup that it has left', async () => {
    const first = group('before');
    const second = group('after');
    first.limit('leaf', { cores: 0.5, memoryBytes: 300 * MIB });
    second.limit('leaf', { cores: 1.5, memoryBytes: 400 * MIB });
    const moved = child();
    first.join(moved.pid);
    expect((await moved.sample()).sample.limits).toMatchObject({ cpuCores: 0.5, memoryBytes: 300 * MIB });
    second.join(moved.pid);
    // The kernel accounts for a running process at its ticks: a new cgroup may show 0 for some milliseconds.
    await moved.order({ do: 'burn', ms: 30, busyMs: 15, everyMs: 16 });
    const after = (await moved.sample()).sample;
    expect(after.limits).toMatchObject({ cpuCores: 1.5, memoryBytes: 400 * MIB });
    expect(after.cpu.window).toBeNull();
    await first.remove();
    // Its counters may still show 0, as above: then the next reading does not compare either.
    await expect.poll(async () => (await moved.sample()).sample.cpu.window).not.toBeNull();
  });

  it('sees a limit that is changed in place', async () => {
    const own = group('resized');
    own.limit('leaf', { cores: 0.5, memoryBytes: 300 * MIB });
    const resized = child(own.joinScript());
    await resized.sample();
    own.limit('leaf', { cores: 0.75, memoryBytes: 310 * MIB });
    expect((await resized.sample()).sample.limits).toMatchObject({ cpuCores: 0.75, memoryBytes: 310 * MIB });
  });

  it('finds itself in a cgroup namespace whose mounts are older', async () => {
    const own = group('namespace');
    own.limit('parent', { cores: 0.5, memoryBytes: 256 * MIB });
    const inside = child(own.joinScript(), 'unshare --cgroup');
    const { limits } = (await inside.sample()).sample;
    expect(limits).toMatchObject({ trust: 'exact', cpuCores: 0.5, memoryBytes: 256 * MIB });
  });

  it('sees limits of a parent that its mounts do not show, as in a container', async () => {
    const own = group('hidden');
    own.limit('parent', { cores: 0.3, memoryBytes: 256 * MIB });
    const mounts = ['cpu', 'cpuacct', 'memory'] as const;
    const bind = mounts.map((each) => `mount --bind ${own.leaf(each)} /sys/fs/cgroup/${each}`).join(' && ');
    const inside = child(own.joinScript(), `unshare --mount sh -c '${bind} && exec "$0" "$@"'`);
    await inside.sample();
    await inside.order({ do: 'burn', ms: 500, busyMs: 10, everyMs: 10 });
    const { limits, cpu } = (await inside.sample()).sample;
    expect(limits).toMatchObject({
      trust: 'exact',
      cpuCores: null,
      memoryBytes: 256 * MIB,
      byAncestor: { cpu: false, memory: true },
    });
    // Only Linux 6.6 and later tell in the own cgroup what an ancestor throttled.
    expect(cpu.window!.throttledByHiddenAncestor).toBe(existsSync(`${own.leaf('cpu')}/cpu.stat.local`) ? true : null);
  });

  it('reads the pressure of its own cgroup in the v2 tree beside v1', async (context) => {
    const own = group('pressure');
    if (own.joinUnified === null) context.skip('needs a cgroup2 mount at /sys/fs/cgroup/unified with cpu.pressure');
    own.limit('parent', { cores: 0.3 });
    const pressed = child(`${own.joinScript()} && ${own.joinUnified}`);
    await pressed.sample();
    await pressed.order({ do: 'burn', ms: 800, busyMs: 10, everyMs: 10 });
    const { pressure } = (await pressed.sample()).sample;
    expect(pressure.cpuSomeRatio).toBeGreaterThan(0.2);
    expect(pressure.cpuSomeRatio).toBeLessThanOrEqual(1);
    expect(pressure.memoryFullRatio).toBeGreaterThanOrEqual(0);
  });

  it('warns of low memory before the kernel kills', async () => {
    const own = group('oom');
    own.limit('parent', { memoryBytes: 128 * MIB });
    const doomed = child(own.joinScript());
    await doomed.order({ do: 'watch', intervalMs: 50 });
    await doomed.order({ do: 'grow', stepBytes: 2 * MIB, everyMs: 30 });
    expect(await doomed.exited).toBe('SIGKILL');
    expect(doomed.said).toContainEqual(
      expect.stringMatching(/^Only 1\d of 128 MB memory are left; at 0 the kernel kills/),
    );
    expect(doomed.said).toContainEqual(expect.stringContaining('Start Node with --max-old-space-size='));
    expect(own.number(`${own.leaf('memory')}/memory.oom_control`, 'oom_kill')).toBe(1);
  });
});
