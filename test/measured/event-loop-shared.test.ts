import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { Controller, Get } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { BlockRecord } from '../../src/index.js';
import { settle } from '../../src/entries/testing.js';
import { startApp, type TestApp } from '../fixtures/app.js';

const BLOCK_MS = 150;
const spin = (): void => {
  const endMs = performance.now() + BLOCK_MS;
  while (performance.now() < endMs);
};

/** What an application makes once, in the first request that needs it, and uses for all. */
interface Shared {
  open(): void | Promise<void>;
  /** Does the work of one request, in a callback of the shared thing. */
  use(work: () => void): void;
}

let worker: Worker | null = null;
let socket: Socket | null = null;
const asked: (() => void)[] = [];
const answer = (): void => asked.shift()?.();

const kinds: Record<string, Shared> = {
  worker: {
    open: async () => {
      if (worker !== null) return;
      const code =
        "const { parentPort } = require('node:worker_threads'); parentPort.on('message', () => parentPort.postMessage(0))";
      worker = new Worker(code, { eval: true });
      worker.on('message', answer);
      await once(worker, 'online');
    },
    use: (work) => {
      asked.push(work);
      worker!.postMessage(0);
    },
  },
  datagram: {
    open: async () => {
      if (socket !== null) return;
      socket = createSocket('udp4');
      socket.on('message', answer);
      socket.bind(0, '127.0.0.1');
      await once(socket, 'listening');
    },
    use: (work) => {
      asked.push(work);
      socket!.send('x', socket!.address().port, '127.0.0.1');
    },
  },
};

@Controller()
class SharedController {
  @Get('first/:kind')
  async first(): Promise<string> {
    await kinds[kind]!.open();
    await sleep(800);
    return 'waits for something else';
  }
  @Get('blocks/:kind')
  blocks(): Promise<string> {
    return new Promise((resolve) => {
      kinds[kind]!.use(() => {
        spin();
        resolve('blocked');
      });
    });
  }
}

let kind = '';
let test: TestApp;
beforeAll(async () => {
  test = await startApp('fastify', { metadata: { controllers: [SharedController] } });
});
afterEach(async () => {
  await worker?.terminate();
  socket?.close();
  [worker, socket] = [null, null];
});
afterAll(() => test.close());

it.each(Object.keys(kinds))(
  'the request that made a shared %s first is not named for the work of those that came later',
  async (of) => {
    kind = of;
    test.sink.records.length = 0;
    const blocks = async (): Promise<BlockRecord[]> => {
      await settle(test.app);
      return test.sink.records.filter(
        (record) => record.kind === 'block' && record.durationMs > 0.7 * BLOCK_MS && record.cause === 'javascript',
      ) as BlockRecord[];
    };
    const first = fetch(`${test.url}/first/${of}`);
    await sleep(120);
    await (await fetch(`${test.url}/blocks/${of}`)).text();
    await (await first).text();
    // Where the machine let the process run.
    for (const block of await blocks()) {
      expect(block).toMatchObject({ request: null, suspect: { route: '/first/:kind' }, delayed: [] });
    }
  },
);
