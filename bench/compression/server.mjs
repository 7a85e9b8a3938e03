// One server: `<stack> <bytes> <changes>`. Stacks: see STACKS. Changes: `live` (a new version every 15 s) or `unique` (every response differs).
import { createServer } from 'node:http';
import * as zlib from 'node:zlib';
import fastifyCompress from '@fastify/compress';
import { Controller, Get } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import compression from 'compression';
import { PerfModule, SharedResponse } from 'nestjs-perf';
import { serveOn } from '../harness/index.mjs';
import { decorate, decorateMethod } from '../overhead/application.mjs';
import { flights } from './flights.mjs';

const [stack, bytes, changes] = process.argv.slice(2);
const { BROTLI_PARAM_QUALITY } = zlib.constants;

/** A live feed is the same object for every visitor until it changes; a unique one differs in its first bytes. */
let body = flights(Number(bytes));
let version = 0;
function answer() {
  return changes === 'unique' ? { request: ++version, ...body } : body;
}
const POLL_MS = 15_000;
/** A server whose turn has not come must not work: `rest` stops its feed, `wake` has it change in five seconds. */
function everyPoll(work) {
  let timer = null;
  const poll = () => {
    work();
    timer = setTimeout(poll, POLL_MS);
  };
  const start = (firstMs) => {
    clearTimeout(timer);
    timer = changes === 'live' ? setTimeout(poll, firstMs) : null;
  };
  start(POLL_MS);
  return { rest: () => clearTimeout(timer), wake: () => start(5_000) };
}

const perf = (options) => [PerfModule.forRoot({ sinks: [], ...options })];
const others = { latency: false, eventLoop: false, resources: false };
const withFastifyCompress = (options) => (app) => app.register(fastifyCompress, options);

/** Who compresses: modules, what main.ts would register, a decorator of the handler. */
const STACKS = {
  'fastify none': {},
  'fastify perf': { imports: perf() },
  'fastify perf, compression only': { imports: perf(others) },
  'fastify perf shared': { imports: perf(), shared: true },
  'fastify @fastify/compress': { main: withFastifyCompress({}) },
  'fastify @fastify/compress gzip': { main: withFastifyCompress({ encodings: ['gzip'] }) },
  'fastify @fastify/compress br 11': {
    main: withFastifyCompress({ encodings: ['br'], brotliOptions: { params: { [BROTLI_PARAM_QUALITY]: 11 } } }),
  },
  'express none': { express: true },
  'express perf': { express: true, imports: perf() },
  'express perf shared': { express: true, imports: perf(), shared: true },
  'express compression': { express: true, main: async (app) => void app.use(compression()) },
};

async function serveNest({ express = false, imports = [], main = async () => {}, shared = false }) {
  class FeedController {
    feed() {
      return answer();
    }
  }
  decorateMethod(FeedController, 'feed', Get(), ...(shared ? [SharedResponse({ ttlMs: POLL_MS })] : []));
  decorate(FeedController, Controller('feed'));
  const root = { module: function AppModule() {}, imports, controllers: [FeedController] };
  const adapter = express ? new ExpressAdapter() : new FastifyAdapter();
  const app = await NestFactory.create(root, adapter, { logger: ['error', 'warn'] });
  await main(app);
  await app.listen(0, '127.0.0.1');
  app.getHttpServer().keepAliveTimeout = 60_000;
  const feed = everyPoll(() => (body = flights(Number(bytes), ++version)));
  serveOn(app.getHttpServer().address().port, feed);
}

/** The ceiling: the body compressed once, ahead of every request, and `end(buffer)`. */
function serveRaw() {
  const { zstdCompressSync, constants } = zlib;
  const encode = () => {
    const json = JSON.stringify(answer());
    return zstdCompressSync === undefined
      ? ['br', zlib.brotliCompressSync(json, { params: { [BROTLI_PARAM_QUALITY]: 5 } })]
      : ['zstd', zstdCompressSync(json, { params: { [constants.ZSTD_c_compressionLevel]: 9 } })];
  };
  let [coding, encoded] = encode();
  const server = createServer((_request, response) => {
    response.writeHead(200, {
      'content-type': 'application/json; charset=utf-8',
      'content-encoding': coding,
      'content-length': encoded.byteLength,
      vary: 'accept-encoding',
    });
    response.end(encoded);
  });
  const feed = everyPoll(() => {
    body = flights(Number(bytes), ++version);
    [coding, encoded] = encode();
  });
  // Connections of the open loop rest longer than Node's five seconds.
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1', () => serveOn(server.address().port, feed));
}

if (stack === 'raw') serveRaw();
else await serveNest(STACKS[stack]);
