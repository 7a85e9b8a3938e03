// One application for each sink, all in this process, and a client that asks them in turn.
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { PerfModule } from 'nestjs-perf';
import { Recorder } from '../../dist/core/recorder.js';
import { median, serveOn } from '../harness/index.mjs';
import { UsersController } from '../overhead/application.mjs';
import { sinkNamed } from './sinks.mjs';

// One request at a time, so one variable each: when its response had ended, and how long after that its record was pushed.
let endedMs = 0;
let pushedAfterUs = NaN;
const { push } = Recorder.prototype;
Recorder.prototype.push = function (record) {
  push.call(this, record);
  pushedAfterUs = (performance.now() - endedMs) * 1_000;
};
const onFinish = () => void (endedMs = performance.now());

async function listen(sink) {
  const off = { eventLoop: false, resources: false, compression: false, defer: false };
  // The first sink wants every record, so that one is pushed for each request whatever the second wants.
  const sinks = [sinkNamed('nothing'), ...(sink === 'nothing' ? [] : [sinkNamed(sink)])];
  const root = {
    module: class AppModule {},
    imports: [PerfModule.forRoot({ ...off, sinks })],
    controllers: [UsersController],
  };
  const app = await NestFactory.create(root, new FastifyAdapter(), { logger: ['error', 'warn'] });
  await app.listen(0, '127.0.0.1');
  // Before the library's own listener.
  app.getHttpServer().prependListener('request', (_request, response) => response.prependListener('finish', onFinish));
  return app.getHttpServer().address().port;
}

const agent = new Agent({ keepAlive: true, maxSockets: 1 });
async function ask(port) {
  pushedAfterUs = NaN;
  const [response] = await once(get({ port, host: '127.0.0.1', path: '/users/42', agent }), 'response');
  await once(response.resume(), 'end');
  // The client may have read the answer before the server has seen that it is sent.
  while (Number.isNaN(pushedAfterUs)) await new Promise(setImmediate);
  return pushedAfterUs;
}

const ports = [];
for (const sink of process.argv.slice(2)) ports.push(await listen(sink));
serveOn(0, {
  /** Median microseconds of `requests` requests to the application with this index. */
  async push({ index, requests }) {
    const samples = [];
    for (let i = 0; i < requests; i++) samples.push(await ask(ports[index]));
    return median(samples);
  },
});
