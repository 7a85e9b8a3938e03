import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, describe, expect, inject, it } from 'vitest';
import type { BlockRecord, PerfSnapshot } from '../../src/index.js';
import { Cgroup, whyNoCgroups } from '../fixtures/cgroups/cgroup-lab.js';
import { Load } from '../fixtures/load.js';

const skipped = whyNoCgroups();

/** A server that can be put into a cgroup once it has booted. */
class Server {
  readonly blocks: BlockRecord[] = [];
  readonly port: Promise<number>;
  private readonly child: ChildProcess;

  constructor() {
    const script = join(inject('compiledFixtures'), 'blockers.server.js');
    this.child = spawn(process.execPath, [script, JSON.stringify({ adapter: 'fastify' })], {
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
  async function throttled(path: string, connections: number, cores: number, ms: number) {
    const cgroup = new Cgroup('loop');
    close.push(() => cgroup.remove());
    const server = new Server();
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

  it('is told from a slow handler: one that uses 40 ms of CPU would not have been reported without the limit', async () => {
    const { blocks } = await throttled('/block/cpu?ms=40', 1, 0.72, THROTTLED_MS);
    expect(blocks.length).toBeGreaterThan(5);
    expect(shareOf('not-scheduled', blocks)).toBeGreaterThan(0.6);
  });
});
