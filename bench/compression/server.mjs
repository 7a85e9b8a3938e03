// One server: `<stack> <bytes> <changes>`. Stacks: see STACKS and RAW. Changes: `live` (a new version every 15 s) or `unique` (every response differs).
import { createServer } from 'node:http';
import * as zlib from 'node:zlib';
import fastifyCompress from '@fastify/compress';
import { Controller, Get, Res } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import compression from 'compression';
import { PerfModule, SharedResponse } from 'nestjs-perf';
import { serveOn } from '../harness/index.mjs';
import { decorate, decorateMethod, readPort, serveNest } from '../overhead/application.mjs';
import { flights } from './flights.mjs';

const [stack, bytes, changes] = process.argv.slice(2);
const POLL_MS = 15_000;

/** A live feed is the same object for every visitor until it changes; a unique one differs in its first bytes. */
let body = flights(Number(bytes));
let version = 0;
const answer = () => (changes === 'unique' ? { request: ++version, ...body } : body);
let published = () => {};
if (changes === 'live') {
  setInterval(() => {
    body = flights(Number(bytes), ++version);
    published();
  }, POLL_MS);
}

const perf = [PerfModule.forRoot({ sinks: [] })];
const withoutCompression = [PerfModule.forRoot({ sinks: [], compression: false })];
/** Ways to compress: modules, main.ts's middleware, a decorator of the handler. */
const STACKS = {
  'fastify none': {},
  'fastify perf': { imports: perf },
  'fastify perf off': { imports: withoutCompression },
  'fastify perf shared': { imports: perf, shared: true },
  'fastify @fastify/compress': { main: (app) => app.register(fastifyCompress) },
  'express perf': { express: true, imports: perf },
  'express perf off': { express: true, imports: withoutCompression },
  'express perf shared': { express: true, imports: perf, shared: true },
  'express compression': { express: true, main: (app) => app.use(compression()) },
};

async function serveFeed({ express, imports = [], main, shared = false }) {
  class FeedController {
    feed() {
      return answer();
    }
  }
  decorateMethod(FeedController, 'feed', Get(), ...(shared ? [SharedResponse({ ttlMs: POLL_MS })] : []));
  decorate(FeedController, Controller('feed'));
  const app = await serveNest({ imports, controllers: [FeedController] }, { express, main });
  serveOn(readPort(app));
}

/** The ceilings: the body compressed once, ahead of every request, and `end(buffer)`; by Node alone, and behind what cannot be had without. */
function rawAnswer() {
  const { BROTLI_PARAM_QUALITY, ZSTD_c_compressionLevel } = zlib.constants;
  const encode = () => {
    const json = JSON.stringify(answer());
    return zlib.zstdCompressSync === undefined
      ? ['br', zlib.brotliCompressSync(json, { params: { [BROTLI_PARAM_QUALITY]: 5 } })]
      : ['zstd', zlib.zstdCompressSync(json, { params: { [ZSTD_c_compressionLevel]: 9 } })];
  };
  let [coding, encoded] = encode();
  published = () => ([coding, encoded] = encode());
  return (response) => {
    response.writeHead(200, {
      'content-type': 'application/json; charset=utf-8',
      'content-encoding': coding,
      'content-length': encoded.byteLength,
      vary: 'accept-encoding',
    });
    response.end(encoded);
  };
}

function listen(listener) {
  const server = createServer(listener).listen(0, '127.0.0.1', () => serveOn(server.address().port));
}

const RAW = {
  raw: (answer) => listen((_request, response) => answer(response)),
  'express raw': (answer) =>
    listen(new ExpressAdapter().getInstance().get('/feed', (_request, response) => answer(response))),
  'nest on express raw': (answer) => serveNestRaw(answer, { express: true }),
  'nest on fastify raw': (answer) => serveNestRaw((reply) => answer(reply.hijack().raw), {}),
};

async function serveNestRaw(answer, options) {
  class FeedController {
    feed(response) {
      answer(response);
    }
  }
  decorateMethod(FeedController, 'feed', Get());
  Res()(FeedController.prototype, 'feed', 0);
  decorate(FeedController, Controller('feed'));
  serveOn(readPort(await serveNest({ controllers: [FeedController] }, options)));
}

if (stack in RAW) await RAW[stack](rawAnswer());
else await serveFeed(STACKS[stack]);
