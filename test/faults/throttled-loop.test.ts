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

// It boots a server and lets the kernel throttle it for twenty periods of 100 ms: about 5 s.
describe.skipIf(skipped !== null)('the loop of a throttled process', { timeout: 120_000 }, () => {
  let close: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const each of close.toReversed()) await each();
    close = [];
  });

  it('is reported as not scheduled, and nobody is named for it', async () => {
    const cgroup = new Cgroup('loop');
    close.push(() => cgroup.remove());
    const server = new Server();
    close.push(() => server.end());
    const load = await Load.start(await server.port);
    close.push(() => load.close());
    // Each handler runs for 5 ms; warm, so that compilation is not what takes long.
    for (let i = 0; i < 50; i++) await load.get('/block/loop?ms=5');
    await server.settled();
    const before = server.blocks.length;

    cgroup.limit('parent', { cores: 0.2 });
    cgroup.join(server.pid);
    load.loop(['/block/loop?ms=5', '/block/loop?ms=5', '/block/loop?ms=5']);
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    await load.stopLoops();
    const { resources } = await server.settled();

    expect(resources!.limits).toMatchObject({ cpuCores: 0.2, byAncestor: { cpu: true } });
    expect(resources!.cpu.throttledPeriods).toBeGreaterThan(5);
    const blocks = server.blocks.slice(before);
    expect(blocks.length).toBeGreaterThan(5);
    expect(blocks.filter(({ request }) => request !== null)).toEqual([]);
    const notScheduled = blocks.filter(({ cause }) => cause === 'not-scheduled');
    expect(notScheduled.length / blocks.length).toBeGreaterThan(0.9);
  });
});
