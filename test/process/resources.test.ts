import fs, { readdirSync, readlinkSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { Injectable, Logger } from '@nestjs/common';
import { describe, expect, it, vi } from 'vitest';
import { PerfService, ResourceSampler, type ResourceRecord } from '../../src/index.js';
import { CpuAllowance } from '../../src/ports/cpu-allowance.js';
import { settle } from '../../src/entries/testing.js';
import { startApp, type TestApp } from '../fixtures/app.js';

/** Constructed by Nest, as a user's own service is. */
@Injectable()
class Autoscaler {
  constructor(readonly sampler: ResourceSampler) {}
}

/** Kernel files that this process holds open. */
function openKernelFiles(): string[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc/self/fd')
    .map((descriptor) => {
      try {
        return readlinkSync(`/proc/self/fd/${descriptor}`);
      } catch {
        return ''; // The descriptor of the listing itself is closed by now.
      }
    })
    .filter((path) => path.startsWith('/sys/fs/cgroup') || /^\/proc\/\d+\/(cgroup|schedstat)$/.test(path));
}

async function resourceRecords(running: TestApp, atLeast: number): Promise<ResourceRecord[]> {
  return vi.waitFor(
    async () => {
      await settle(running.app);
      const records = running.sink.records.filter((record) => record.kind === 'resource');
      expect(records.length).toBeGreaterThanOrEqual(atLeast);
      return records;
    },
    { timeout: 20_000, interval: 20 },
  );
}

describe('resources of an application', () => {
  it('publishes a record each interval, and shows what is true now in the snapshot', async () => {
    const running = await startApp('fastify', { perf: { resources: { intervalMs: 40 } } });
    const records = await resourceRecords(running, 3);
    for (const { sample } of records) expect(sample.process.rssBytes).toBeGreaterThan(10 * 2 ** 20);
    // On the average: after a timer that the machine made late, the next one comes early.
    const windowsMs = records.reduce((sum, { sample }) => sum + sample.cpu.window!.ms, 0);
    expect(windowsMs / records.length).toBeGreaterThan(20);
    const { resources } = running.app.get(PerfService).snapshot();
    expect(resources!.at).toBeGreaterThanOrEqual(records[0]!.sample.at);
    await running.close();
  });

  it('shows a sample from the start on, and injects the sampler', async () => {
    const running = await startApp('fastify', {
      perf: { resources: { cpuLimitCores: 0.5, memoryLimitBytes: 512 * 2 ** 20, cpuRequestCores: 0.25 } },
      metadata: { providers: [Autoscaler] },
    });
    expect(running.app.get(PerfService).snapshot().resources).toMatchObject({
      limits: { source: 'override', cpuCores: 0.5, memoryBytes: 512 * 2 ** 20 },
    });
    const { sampler } = running.app.get(Autoscaler);
    expect(sampler.latest).toBeNull();
    const first = sampler.sample();
    expect(first.cpu.window).toBeNull();
    expect(sampler.latest).toBe(first);
    expect(sampler.recommend()).toMatchObject({
      workers: 1,
      threadPoolSize: 2,
      maxOldSpaceSizeMb: expect.any(Number),
    });
    await running.close();
  });

  it('reads nothing in the main thread once the watchdog runs, and the same figures', async () => {
    const running = await startApp('fastify', { perf: { resources: { intervalMs: 20 } } });
    await (await fetch(running.url)).text();
    const perf = running.app.get(PerfService);
    const before = await resourceRecords(running, 3);
    const read: string[] = [];
    const { readFileSync } = fs;
    fs.readFileSync = ((path: string, ...rest: never[]) => {
      if (/^\/(proc|sys)\//.test(path)) read.push(path);
      return readFileSync(path, ...rest);
    }) as typeof readFileSync;
    syncBuiltinESMExports();
    try {
      // The first look of the thread's may note files that are missing.
      await resourceRecords(running, before.length + 2);
      read.length = 0;
      const records = await resourceRecords(running, before.length + 6);
      perf.snapshot();
      perf.health();
      running.app.get(CpuAllowance, { strict: false }).throttledMs();
      expect(read).toEqual([]);
      const own = running.app.get(ResourceSampler).sample();
      expect(read.length).toBeGreaterThan(0);
      const { sample } = records.at(-1)!;
      expect(sample.limits).toEqual(own.limits);
      expect(sample.cpu.window!.ms).toBeGreaterThan(1);
      expect(own.cpu.usageSeconds! - sample.cpu.usageSeconds!).toBeGreaterThanOrEqual(0);
      expect(sample.memory.usageBytes).toBeGreaterThan(0.5 * own.memory.usageBytes!);
    } finally {
      fs.readFileSync = readFileSync;
      syncBuiltinESMExports();
      await running.close();
    }
  });

  it('leaves no kernel file open when the application has closed', async () => {
    // A thread ends by itself, some milliseconds after its application has closed.
    await expect.poll(openKernelFiles).toEqual([]);
    const running = await startApp('fastify', { perf: { resources: { intervalMs: 20 } } });
    await resourceRecords(running, 1);
    running.app.get(ResourceSampler).sample();
    await running.close();
    const published = running.sink.records.length;
    await expect.poll(openKernelFiles).toEqual([]);
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(running.sink.records).toHaveLength(published);
  });

  it('installs nothing when it is off, and still samples', async () => {
    await expect.poll(openKernelFiles).toEqual([]);
    const running = await startApp('fastify', { perf: { resources: false, eventLoop: false } });
    expect(openKernelFiles()).toEqual([]);
    expect(running.app.get(PerfService).snapshot().resources).toBeNull();
    const sample = running.app.get(ResourceSampler).sample();
    expect(sample.cpu.usageSeconds).toBeGreaterThan(0);
    expect(sample.memory.usageBytes).toBeGreaterThan(0);
    await running.close();
    expect(openKernelFiles()).toEqual([]);
  });

  it('says once through the logger that the heap may outgrow the container', async () => {
    const warn = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    const running = await startApp('fastify', {
      perf: { resources: { memoryLimitBytes: 64 * 2 ** 20, intervalMs: 20 } },
    });
    await resourceRecords(running, 2);
    const said = () => warn.mock.calls.map(([message]) => String(message));
    const low = () => said().filter((message) => message.startsWith('Only 0 of 64 MB memory are left'));
    await expect.poll(low).toHaveLength(1);
    await resourceRecords(running, 6);
    expect(said().filter((message) => message.startsWith('The heap may grow to'))).toEqual([
      expect.stringMatching(/NODE_OPTIONS='--max-old-space-size=32 --max-semi-space-size=\d+'\.$/),
    ]);
    expect(low()).toHaveLength(1);
    warn.mockRestore();
    await running.close();
  });
});
