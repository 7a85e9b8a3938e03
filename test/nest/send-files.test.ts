import { createReadStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { Controller, Get, Header, HttpCode, Param, Res, StreamableFile } from '@nestjs/common';
import { of } from 'rxjs';
import { afterAll, describe, expect, it } from 'vitest';
import { byNest } from '../fixtures/app.js';
import { RawClient } from '../fixtures/socket.js';
import { until } from '../fixtures/until.js';
import { bothForms } from './applications.js';

const folder = mkdtempSync(join(tmpdir(), 'send-files-'));
const file = join(folder, 'notes.txt');
const content = Array.from({ length: 2_000 }, (_, line) => `line ${line} of the notes`).join('\n');
writeFileSync(file, content);
afterAll(() => rmSync(folder, { recursive: true }));

let open: Readable | null = null;

@Controller('files')
class FilesController {
  @Get('stream')
  stream() {
    return new StreamableFile(createReadStream(file));
  }
  @Get('buffer')
  buffer() {
    return new StreamableFile(Buffer.from(content));
  }
  @Get('promise')
  async promise() {
    return new StreamableFile(createReadStream(file));
  }
  @Get('observable')
  observable() {
    return of(new StreamableFile(Buffer.from('observed')));
  }
  @Get('options')
  options() {
    return new StreamableFile(Buffer.from('{}'), {
      type: 'application/x-notes',
      disposition: 'attachment; filename="notes.json"',
      length: 2,
    });
  }
  @Get('headers')
  @Header('Content-Type', 'text/markdown')
  @Header('Content-Disposition', 'inline')
  @HttpCode(203)
  headers() {
    return new StreamableFile(Buffer.from('# Notes'));
  }
  @Get('reply')
  reply(@Res({ passthrough: true }) reply: { header(name: string, value: string): void }) {
    reply.header('x-notes', '1');
    reply.header('content-type', 'text/plain');
    return new StreamableFile(Buffer.from('notes'));
  }
  @Get('missing')
  missing() {
    return new StreamableFile(createReadStream(join(folder, 'no-such-file.txt')));
  }
  @Get('missing/handled')
  handled() {
    const missing = new StreamableFile(createReadStream(join(folder, 'no-such-file.txt')));
    return missing.setErrorHandler((_error, response) => {
      response.statusCode = 410;
      response.send('gone');
    });
  }
  @Get('breaks/:after')
  breaks(@Param('after') after: string) {
    let left = Number(after);
    const stream = new Readable({
      read() {
        if (left === 0) this.destroy(new Error('broken'));
        else this.push('a chunk\n'.repeat(100));
        left -= 1;
      },
    });
    return new StreamableFile(stream).setErrorLogger(() => {});
  }
  @Get('endless')
  endless() {
    open = new Readable({
      read() {
        this.push(Buffer.alloc(16_384, 'x'));
      },
    });
    return new StreamableFile(open).setErrorLogger(() => {});
  }
  /** Looks like a file and is none. */
  @Get('lookalike')
  lookalike() {
    return { pipe: 'work', value: 1 };
  }
}

describe.each(byNest('express'))('files on %s', (adapter) => {
  const charset = adapter === 'express' ? '; charset=utf-8' : '';
  const { ask, alike } = bothForms(adapter, () => ({ controllers: [FilesController] }));

  it.each(['stream', 'buffer', 'promise'])('sends a file from a %s', async (path) => {
    const { status, headers, text } = await ask(`/files/${path}`);
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('application/octet-stream');
    expect(headers['content-encoding']).toBeUndefined();
    expect(text).toBe(content);
  });

  it('sends a file from an observable', async () => {
    expect(await ask('/files/observable')).toMatchObject({ status: 200, text: 'observed' });
  });

  it('sends the type, the disposition and the length that the file has', async () => {
    const { headers, text } = await ask('/files/options');
    expect(headers).toMatchObject({
      'content-type': 'application/x-notes',
      'content-disposition': 'attachment; filename="notes.json"',
      'content-length': '2',
    });
    expect(text).toBe('{}');
  });

  it('keeps the headers and the status of the decorators', async () => {
    const { status, headers, text } = await ask('/files/headers');
    expect({ status, text }).toEqual({ status: 203, text: '# Notes' });
    expect(headers).toMatchObject({ 'content-type': `text/markdown${charset}`, 'content-disposition': 'inline' });
  });

  it('keeps the headers that the handler sets on the response', async () => {
    const { headers, text } = await ask('/files/reply');
    expect(headers).toMatchObject({ 'content-type': `text/plain${charset}`, 'x-notes': '1' });
    expect(text).toBe('notes');
  });

  it('answers HEAD without the file', async () => {
    const { status, text } = await ask('/files/options', { method: 'HEAD' });
    expect({ status, text }).toEqual({ status: 200, text: '' });
  });

  it('answers an error for a file that does not exist, and in JSON that can be read', async () => {
    const { status, headers, text } = await ask('/files/missing');
    expect(headers['content-encoding']).toBeUndefined();
    expect(status).toBe(adapter === 'express' ? 400 : 500);
    if (adapter === 'express') expect(text).toBe('Bad Request');
    else expect(JSON.parse(text)).toMatchObject({ statusCode: 500 });
  });

  it('answers what the error handler of the file says', async () => {
    const answer = await ask('/files/missing/handled');
    if (adapter === 'express') expect(answer).toMatchObject({ status: 410, text: 'gone' });
  });

  it('answers an object that looks like a stream as JSON', async () => {
    expect((await ask('/files/lookalike')).text).toBe('{"pipe":"work","value":1}');
  });

  it('answers an error when the stream breaks before its first byte', async () => {
    const { status } = await ask('/files/breaks/0');
    expect(status).toBe(adapter === 'express' ? 400 : 500);
  });

  it('closes the connection when the stream breaks midway', async () => {
    await alike(async ({ port, newRecords }) => {
      const client = await RawClient.open(port);
      client.get('/files/breaks/3');
      await new Promise((resolve) => client.socket.once('close', resolve));
      expect(client.received).toMatch(/^HTTP\/1\.1 200 /);
      expect(client.received.endsWith('0\r\n\r\n')).toBe(false);
      const records = await newRecords();
      if (records !== null) expect(records).toMatchObject([{ status: 200, outcome: 'aborted' }]);
    });
  });

  it('lets go of the stream when the client leaves', async () => {
    await alike(async ({ port, newRecords }) => {
      const client = await RawClient.open(port);
      client.get('/files/endless');
      await client.until('200 OK');
      client.leave();
      await until('the stream is destroyed', () => open!.destroyed);
      const records = await newRecords();
      if (records !== null) expect(records).toMatchObject([{ status: 200, outcome: 'aborted' }]);
    });
  });
});
