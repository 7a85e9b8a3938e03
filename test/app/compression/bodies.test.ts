import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { Controller, Get, Res, StreamableFile } from '@nestjs/common';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { supportedCodings } from '../../../src/compression/rules/accept-encoding.js';
import { adapters, startApp } from '../../fixtures/app.js';
import { textOf } from '../../fixtures/compression.controller.js';
import { callAccepting } from '../../fixtures/http-client.js';

const LONG = process.env['PERF_LONG'] !== undefined;
let answer: unknown;
let chunks: Uint8Array[] = [];

@Controller('bodies')
class BodiesController {
  @Get('answer')
  answer(): unknown {
    return answer;
  }

  @Get('chunks')
  chunks(): StreamableFile {
    return new StreamableFile(Readable.from(chunks.map((chunk) => Buffer.from(chunk))), { type: 'text/plain' });
  }
}

describe.each(adapters)('a body on %s', (adapter) => {
  it('sends what the handler returned, whatever it is, at every level and in every coding', async () => {
    const json = fc.oneof(
      fc.array(fc.record({ id: fc.nat(), name: fc.string({ unit: 'binary' }), tags: fc.array(fc.string()) }), {
        maxLength: 200,
      }),
      fc
        .string({ unit: 'grapheme', maxLength: 300 })
        .chain((unit) => fc.nat(3_000).map((times) => ({ text: unit.repeat(times).slice(0, 100_000) }))),
      fc.jsonValue().filter((value) => typeof value === 'object' && value !== null),
    );
    const levels = fc.record({
      br: fc.integer({ min: 0, max: 6 }),
      gzip: fc.integer({ min: 1, max: 7 }),
      zstd: fc.integer({ min: 1, max: 12 }),
    });
    const numRuns = LONG ? 400 : 12;
    for (const chosen of fc.sample(levels, LONG ? 12 : 3)) {
      const test = await startApp(adapter, {
        perf: { compression: { levels: chosen, thresholdBytes: 0 } },
        metadata: { controllers: [BodiesController] },
      });
      await fc.assert(
        fc.asyncProperty(json, fc.constantFrom(...supportedCodings, 'identity'), async (body, coding) => {
          answer = body;
          const wanted = JSON.stringify(body);
          for (let again = 0; again < 2; again++) {
            const response = await callAccepting(`${test.url}/bodies/answer`, coding);
            expect(response.text).toBe(wanted);
            expect(response.raw.byteLength).toBeLessThanOrEqual(Buffer.byteLength(wanted));
          }
        }),
        { numRuns },
      );
      await test.close();
    }
  }, 120_000);

  it('sends what a stream gave, whatever its bytes and chunks are', async () => {
    const test = await startApp(adapter, { metadata: { controllers: [BodiesController] } });
    // Mostly short first chunks of letters and digits: what a sniffing compressor might take for something else.
    const chunk = fc.oneof(
      fc
        .string({ unit: fc.constantFrom('8', '0', '(', 'S', 'x', ' ', 'h', 'b', 'H', 'K'), maxLength: 12 })
        .map((text) => Buffer.from(text)),
      fc.uint8Array({ maxLength: 3_000 }),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(chunk, { maxLength: 8 }),
        fc.constantFrom(...supportedCodings, 'identity'),
        async (given, coding) => {
          chunks = given;
          const response = await callAccepting(`${test.url}/bodies/chunks`, coding);
          expect(response.body.equals(Buffer.concat(given))).toBe(true);
        },
      ),
      { numRuns: LONG ? 1_000 : 30 },
    );
    await test.close();
  }, 180_000);
});

describe('while a body is encoded, on fastify', () => {
  const big = textOf(300_000);
  interface Sender {
    raw: ServerResponse;
    type(type: string): Sender;
    send(body: string): unknown;
  }
  @Controller('first')
  class FirstController {
    @Get('rejects')
    async rejects(@Res() reply: Sender): Promise<void> {
      reply.type('text/plain').send(big);
      await Promise.reject(new Error('after the answer'));
    }
    @Get('again')
    again(@Res() reply: Sender): void {
      reply.type('text/plain').send(big);
      reply.send('another one');
    }
    @Get('times-out')
    timesOut(@Res() reply: Sender): void {
      reply.type('text/plain').send(big);
      if (!reply.raw.headersSent) reply.raw.end('timeout');
    }
  }

  it.each(['rejects', 'again', 'times-out'])('the first answer wins, and the process lives: %s', async (path) => {
    const test = await startApp('fastify', { metadata: { controllers: [FirstController] } });
    for (let i = 0; i < 3; i++) {
      const { status, text, headers } = await callAccepting(`${test.url}/first/${path}`, 'gzip');
      expect([status, headers['content-encoding'], text === big]).toEqual([200, 'gzip', true]);
    }
    await test.close();
  });
});
