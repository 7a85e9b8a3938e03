import { pbkdf2 } from 'node:crypto';
import { Controller, Get } from '@nestjs/common';
import { afterEach, expect, it } from 'vitest';
import { adapterOf, adapters } from '../fixtures/app.js';
import { closeApps, listeningApp, recordsOf } from '../fixtures/build-app.js';
import { RawClient } from '../fixtures/socket.js';
import { until } from '../fixtures/until.js';

const TEXT = Array.from({ length: 400_000 }, (_, i) => `row ${i}`).join(',');
let returned = 0;

@Controller()
class TextController {
  /** Whoever compresses in the thread pool has to wait behind this. */
  @Get('text')
  text() {
    for (let i = 0; i < 8; i++) pbkdf2('secret', 'salt', 300_000, 64, 'sha512', () => {});
    returned += 1;
    return { text: TEXT };
  }
}

afterEach(closeApps);

it.each(adapters)(
  'a client that leaves while its answer is compressed on %s is recorded as aborted',
  async (adapter) => {
    const built = await listeningApp(adapterOf(adapter), { metadata: { controllers: [TextController] } });
    returned = 0;
    const client = await RawClient.open(built.port);
    client.get('/text', 'Accept-Encoding: br, gzip\r\n');
    await until('the handler', () => returned === 1);
    const { received } = client;
    client.leave();
    const records = await recordsOf(built, 1);
    expect(received).toBe('');
    expect(records).toMatchObject([{ route: '/text', status: 499, outcome: 'aborted' }]);
  },
);
