// The benchmark's own Redis on the load generator's core, and how many jobs it holds.
import { spawnSync } from 'node:child_process';
import { Redis } from 'ioredis';
import { LOAD_CORE, canPin } from '../harness/pinned-process.mjs';

export const QUEUE = 'bench';

export class PinnedRedis {
  #client;

  constructor(port) {
    this.#client = new Redis(port, '127.0.0.1');
  }

  static async take({ port, child }) {
    if (canPin) spawnSync('taskset', ['-a', '-c', '-p', String(LOAD_CORE), String(child.pid)]);
    return new PinnedRedis(port);
  }

  /** Jobs, or items of batches, that wait in the queue; then an empty Redis. */
  async countAndClear() {
    const ids = await this.#client.lrange(`bull:${QUEUE}:wait`, 0, -1);
    let count = 0;
    for (const id of ids) {
      if (!id.startsWith('batch-')) count += 1;
      else count += JSON.parse(await this.#client.hget(`bull:${QUEUE}:${id}`, 'data')).items.length;
    }
    await this.#client.flushall();
    return count;
  }

  quit() {
    return this.#client.quit();
  }
}
