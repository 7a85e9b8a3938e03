import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, describe, expect, inject, it } from 'vitest';
import type { BlockRecord, PerfModuleOptions, PerfSnapshot } from '../../src/index.js';
import { Cgroup, whyNoCgroups } from '../fixtures/cgroups/cgroup-lab.js';
import { Load } from '../fixtures/load.js';

const skipped = whyNoCgroups();

/** A server that can be put into a cgroup once it has booted. */
class Server {
  readonly blocks: BlockRecord[] = [];
  readonly port: Promise<number>;
  private readonly child: ChildProcess;

  constructor(perf: PerfModuleOptions = {}) {
    const script = join(inject('compiledFixtures'), 'blockers.server.js');
    this.child = spawn(process.execPath, [script, JSON.stringify({ adapter: 'fastify', perf })], {
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    });
    this.port = new Promise((resolve) => {
      createInterface({ input: this.child.stdout! }).on('line', (line) => {
        if (!line.startsWith('{')) return;
        const message = JSON.parse(line) as { port?: number; records?: BlockRecord[] };
        if (message.port !== undefined) resolve(message.port);
        this.blocks.push(...(message.records ?? []));
      });
    });
  }

  get pid(): number {
    return this.child.pid!;
  }

  async settled(): Promise<PerfSnapshot> {
    const answered = once(this.child, 'message');
    this.child.send('settle');
    const [{ snapshot }] = (await answered) as [{ snapshot: PerfSnapshot }];
    return snapshot;
  }

  async end(): Promise<void> {
    const gone = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await gone;
  }
}

/** Periods are of 100 ms. */
const THROTTLED_MS = process.env['PERF_LONG'] === undefined ? 1_500 : 4_000;

// Each boots one server or two, and lets the kernel throttle it.
describe.skipIf(skipped !== null)('the loop of a throttled process', { timeout: 120_000 }, () => {
  const close: (() => Promise<unknown>)[] = [];
  const closeAll = async (): Promise<void> => {
    for (const each of close.splice(0).toReversed()) await each();
  };
  afterEach(closeAll);

  /** What stood still while a limit of `cores` held the server back for `ms`, and what it then says of itself. */
  async function throttled(path: string, connections: number, cores: number, ms: number, perf?: PerfModuleOptions) {
    const cgroup = new Cgroup('loop');
    close.push(() => cgroup.remove());
    const server = new Server(perf);
    close.push(() => server.end());
    const load = await Load.start(await server.port);
    close.push(() => load.close());
    // Warm, so that compilation is not what takes long.
    for (let i = 0; i < 20; i++) await load.get(path);
    await server.settled();
    const before = server.blocks.length;

    cgroup.limit('parent', { cores });
    cgroup.join(server.pid);
    load.loop(Array.from({ length: connections }, () => path));
    await new Promise((resolve) => setTimeout(resolve, ms));
    await load.stopLoops();
    const { resources } = await server.settled();
    await closeAll();
    return { blocks: server.blocks.slice(before), resources };
  }

  const shareOf = (cause: BlockRecord['cause'], blocks: readonly BlockRecord[]): number =>
    blocks.filter((block) => block.cause === cause).length / blocks.length;

  it('is reported as not scheduled, and nobody is named for it', async () => {
    // Each handler runs for 5 ms.
    const { blocks, resources } = await throttled('/block/loop?ms=5', 3, 0.2, THROTTLED_MS);
    expect(resources!.limits).toMatchObject({ cpuCores: 0.2, byAncestor: { cpu: true } });
    expect(resources!.cpu.throttledPeriods).toBeGreaterThan(5);
    expect(blocks.length).toBeGreaterThan(5);
    expect(blocks.filter(({ request }) => request !== null)).toEqual([]);
    expect(shareOf('not-scheduled', blocks)).toBeGreaterThan(0.75);
  });

  // Each handler uses 40 ms of CPU, too little for a report, and the limit keeps it waiting for less than half as long:
  // too little to tell by the sampler's own figures. Only the cgroup's counters tell.
  it('is told from a slow handler by the counters of the cgroup, which the resources feature hands to the event loop', async ({
    skip,
  }) => {
    const path = '/block/cpu?ms=40';
    const told = await throttled(path, 1, 0.72, THROTTLED_MS);
    const untold = await throttled(path, 1, 0.72, THROTTLED_MS, { resources: false });
    expect(told.blocks.length).toBeGreaterThan(5);
    expect(untold.blocks.length).toBeGreaterThan(5);
    // A busy machine adds to both: what counts is the difference.
    const control = shareOf('not-scheduled', untold.blocks);
    skip(control > 0.6, `the machine itself delayed ${Math.round(100 * control)} % of the blocks of the control`);
    expect(shareOf('not-scheduled', told.blocks)).toBeGreaterThan(control + 0.2);
  });
});
