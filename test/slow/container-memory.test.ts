import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { expect, inject, it } from 'vitest';
import { Cgroup, whyNoCgroups } from '../fixtures/cgroups/cgroup-lab.js';

const MIB = 2 ** 20;
const CONTAINER_MB = 256;
const BODIES = process.env['PERF_LONG'] === undefined ? 1_500 : 100_000;
const CONNECTIONS = 16;
/** Of bodies, for each request for a feed. */
const FEED_EACH = 20;

/** Reads an encoded answer to its end. */
const receive = (url: string, agent: Agent): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const headers = { 'accept-encoding': 'gzip, deflate, br, zstd' };
    get(url, { agent, headers }, (response) => response.resume().once('end', () => resolve(response.statusCode))).once(
      'error',
      reject,
    );
  });

it.skipIf(whyNoCgroups() !== null)(
  `with default options in ${CONTAINER_MB} MB a feed and ${BODIES} different bodies take memory that stays the same`,
  async () => {
    const group = new Cgroup('container-memory');
    group.limit('leaf', { memoryBytes: CONTAINER_MB * MIB });
    const script = join(inject('compiledFixtures'), 'feed.process.js');
    const child = spawn('sh', ['-c', `${group.joinScript()} && exec ${process.execPath} ${script}`], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const exited = once(child, 'exit');
    const nextMessage = async (): Promise<number> => {
      const [message] = await Promise.race([
        once(child, 'message'),
        exited.then((end) => Promise.reject(new Error(String(end)))),
      ]);
      return message as number;
    };
    const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
    try {
      const url = `http://127.0.0.1:${await nextMessage()}`;
      const rssMb: number[] = [];
      let n = 0;
      const ask = async (): Promise<void> => {
        while (n < BODIES) {
          const mine = n++;
          expect(await receive(`${url}/different?n=${mine}`, agent)).toBe(200);
          if (mine % FEED_EACH > 0) continue;
          expect(await receive(`${url}/${mine % (2 * FEED_EACH) > 0 ? 'feed' : 'shared'}`, agent)).toBe(200);
          if (mine % (BODIES / 50) > 0) continue;
          child.send('rss');
          rssMb.push(await nextMessage());
        }
      };
      await Promise.all(Array.from({ length: CONNECTIONS }, ask));
      const most = (of: readonly number[]): number => Math.round(Math.max(...of));
      const half = rssMb.length / 2;
      const [first, second] = [most(rssMb.slice(0, half)), most(rssMb.slice(half))];
      const peakMb = group.number(`${group.leaf('memory')}/memory.max_usage_in_bytes`) / MIB;
      console.log(
        `Node ${process.versions.node}: RSS ${first} MB, then ${second}; the container ${peakMb.toFixed(0)} at most`,
      );
      expect(group.number(`${group.leaf('memory')}/memory.oom_control`, 'oom_kill')).toBe(0);
      expect(second).toBeLessThan(first * 1.3);
    } finally {
      agent.destroy();
      child.kill('SIGKILL');
      await exited;
      await group.remove();
    }
  },
  1_800_000,
);
