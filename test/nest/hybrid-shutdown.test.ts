import type { AddressInfo, Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Get, Inject, Logger } from '@nestjs/common';
import {
  ClientProxyFactory,
  MessagePattern,
  Transport,
  type ClientProxy,
  type MicroserviceOptions,
} from '@nestjs/microservices';
import { lastValueFrom } from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { defer, Deferrer } from '../../src/index.js';
import { adapterOf, acrossNests } from '../fixtures/app.js';
import { closeApps, listeningApp } from '../fixtures/build-app.js';
import { RawClient } from '../fixtures/socket.js';
import { until } from '../fixtures/until.js';
import { withEventLoop } from '../fixtures/usual.js';

withEventLoop();

const done: string[] = [];
let isOpen = false;
let closeStream: () => void = () => {};
let client: ClientProxy | null = null;

@Controller()
class OrdersController {
  constructor(@Inject(Deferrer) private readonly deferrer: Deferrer) {}

  @Get('stream')
  stream() {
    isOpen = true;
    return new Promise((resolve) => (closeStream = () => resolve({})));
  }
  @MessagePattern('injected')
  injected(id: string) {
    this.deferrer.defer(() => done.push(`injected ${id}`));
    return id;
  }
  @MessagePattern('imported')
  imported(id: string) {
    defer(() => done.push(`imported ${id}`));
    return id;
  }
}

const warnings = (): string[] => vi.mocked(Logger.prototype.warn).mock.calls.map(([message]) => String(message));

afterEach(async () => {
  closeStream();
  await client?.close();
  await closeApps();
  vi.restoreAllMocks();
});

describe.each(acrossNests('fastify'))(
  'a hybrid application on %s whose HTTP server an open request holds',
  (adapter) => {
    it.each([true, false])('still runs what its messages defer (inheritAppConfig: %s)', async (inheritAppConfig) => {
      done.length = 0;
      isOpen = false;
      vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
      const { app, port } = await listeningApp(adapterOf(adapter), {
        metadata: { controllers: [OrdersController] },
        perf: { work: true, defer: { drainTimeoutMs: 200 }, flushTimeoutMs: 200 },
        beforeInit: async (nest) => {
          const tcp: MicroserviceOptions = { transport: Transport.TCP, options: { host: '127.0.0.1', port: 0 } };
          nest.connectMicroservice(tcp, { inheritAppConfig });
          await nest.startAllMicroservices();
        },
      });
      const server = app.getMicroservices()[0]!.unwrap<Server>();
      const tcp = { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
      const ask = (pattern: string, id: string): Promise<string> => lastValueFrom(client!.send<string>(pattern, id));
      client = ClientProxyFactory.create({ transport: Transport.TCP, options: tcp });
      expect(await ask('injected', 'before')).toBe('before');
      const http = await RawClient.open(port);
      http.get('/stream');
      await until('the request runs', () => isOpen);
      const closing = app.close();
      await until('work is drained early', () =>
        warnings().some((text) => text.includes('Still open: 1 × GET /stream')),
      );
      // Until that drain is over, and longer.
      await delay(600);
      expect(await ask('injected', 'late')).toBe('late');
      expect(await ask('imported', 'late')).toBe('late');
      await until('the deferred work', () => done.includes('injected late') && done.includes('imported late'));
      closeStream();
      await closing;
      http.leave();
      expect(warnings().filter((text) => text.includes('dropped'))).toEqual([]);
    });
  },
);
