import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { All, Controller, Req, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { adapterOf, adapters } from '../../fixtures/app.js';
import { closeApps, listeningApp } from '../../fixtures/build-app.js';

const TEXT = 'a line of the body '.repeat(300);
const JSON_TYPE = { 'content-type': 'application/json' };

/** What an application does to a response by Node's own functions; it writes down what it sees. */
const handlers: Record<string, (response: ServerResponse, see: (seen: unknown) => void) => void> = {
  'a header without a value': refusedHead({ ...JSON_TYPE, 'x-empty': undefined }),
  'a header name with a space': refusedHead({ ...JSON_TYPE, 'x empty': '1' }),
  'a line break in a header': refusedHead({ ...JSON_TYPE, 'x-lines': 'a\nb' }),
  'a header without a value behind one that was set': (response, see) => {
    response.setHeader('x-before', '1');
    refusedHead({ ...JSON_TYPE, 'x-before': '2', 'x-empty': undefined })(response, see);
  },
  'another status and reason after the head': (response) => {
    response.writeHead(200, JSON_TYPE);
    response.statusCode = 418;
    response.statusMessage = 'Teapot';
    response.end(TEXT);
  },
  'an encoding that `end` does not know': (response, see) => {
    response.setHeader('content-type', 'text/plain');
    try {
      response.end(TEXT, 'unknown' as BufferEncoding);
    } catch (error) {
      see((error as { code: string }).code);
      response.destroy();
    }
  },
};

for (const taken of [['write', 'end'], ['writeHead']] as const) {
  handlers[`${taken.join(' and ')} taken off the response`] = (response) => {
    for (const name of taken) Reflect.deleteProperty(response, name);
    response.writeHead(200, { 'content-type': 'text/plain' });
    response.end(TEXT);
  };
}
handlers['an implied head behind functions taken off the response'] = (response) => {
  for (const name of ['write', 'end']) Reflect.deleteProperty(response, name);
  response.setHeader('content-type', 'text/plain');
  response.write(TEXT);
  response.end(TEXT);
};

function refusedHead(headers: Record<string, string | undefined>): (typeof handlers)[string] {
  return (response, see) => {
    try {
      response.writeHead(200, headers);
    } catch (error) {
      see((error as { code: string }).code);
    }
    see([
      response.statusCode,
      response.headersSent,
      response.getHeader('content-type'),
      response.getHeader('x-before'),
    ]);
    response.end(TEXT);
  };
}

let seen: unknown[] = [];

@Controller('odd')
class OddController {
  @All()
  run(@Req() request: IncomingMessage & { raw?: IncomingMessage }, @Res() reply: ServerResponse & FastifyReply): void {
    const name = decodeURIComponent(String((request.raw ?? request).headers['x-case']));
    if (reply.hijack !== undefined) reply.hijack();
    handlers[name]!(reply.raw ?? reply, (what) => seen.push(what));
  }
}

/** The first line and the type of an answer as they came, and what the application has seen. */
async function answerOf(port: number, method: string, name: string): Promise<unknown[]> {
  seen = [];
  const received = await new Promise<string>((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => (text += chunk));
    socket.on('close', () => resolve(text)).on('error', () => {});
    const headers = ['Host: test', 'Accept-Encoding: br', `X-Case: ${encodeURIComponent(name)}`, 'Connection: close'];
    socket.end(`${method} /odd HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`);
  });
  const [line, ...fields] = received.split('\r\n\r\n')[0]!.split('\r\n');
  return [line, fields.filter((field) => /^(?:content-type|x-)/i.test(field) && !/powered/i.test(field)), seen];
}

afterEach(closeApps);

describe.each(adapters)('a response on %s', (adapter) => {
  it.each(Object.keys(handlers))('is as without the module with %s', async (name) => {
    const metadata = { controllers: [OddController] };
    const bare = await listeningApp(adapterOf(adapter), { metadata, perf: null });
    const ours = await listeningApp(adapterOf(adapter), { metadata });
    for (const method of ['GET', 'HEAD', 'POST']) {
      expect([method, await answerOf(ours.port, method, name)]).toEqual([
        method,
        await answerOf(bare.port, method, name),
      ]);
    }
  });
});
