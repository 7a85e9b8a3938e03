import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { Allowed } from '../../../packages/load/src/allowed.js';
import { leftOut, readTraffic } from '../../../packages/load/src/traffic.js';
import { folder, recordingOf } from '../../fixtures/load-command.js';

describe('a recording', () => {
  const get = new Allowed([]);
  it('is read as it is or unpacked, in its order, without headers of the connection', async () => {
    const file = recordingOf([
      {
        url: '/b?q=[redacted]',
        t: 20,
        headers: { Host: 'evil', 'accept-language': 'de', 'content-length': '3', range: '[redacted]', a: 'b\r\nc: d' },
      },
      { url: '/a/é%20', t: 10, route: '/a/:name' },
    ]);
    const { requests } = await readTraffic(file, get);
    expect(requests.map(({ path, route }) => [path, route])).toEqual([
      ['/a/%C3%A9%20', '/a/:name'],
      ['/b?q=%5Bredacted%5D', '/b'],
    ]);
    expect(requests[1]!.headers).toEqual({ 'accept-language': 'de' });
  });

  it.each<[string, object, string]>([
    ['fields', { a: 'b c', d: '' }, 'a=b+c&d='],
    ['a field that came several times', { ids: ['1', '2'] }, 'ids=1&ids=2'],
    ['a list of one', { ids: ['1'] }, 'ids[]=1'],
    ['an object', { filter: { name: 'x', tags: ['a', 'b'] } }, 'filter[name]=x&filter[tags]=a&filter[tags]=b'],
    ['objects', { items: [{ id: '1', n: '2' }, { id: '3' }] }, 'items[0][id]=1&items[0][n]=2&items[1][id]=3'],
    ['lists of lists', { m: [['1', '2'], ['3']] }, 'm[0]=1&m[0]=2&m[1][]=3'],
    ['what no form holds', { n: null, t: 7 }, 'n=&t=7'],
  ])('holds forms that are sent as they came: %s', async (_what, body, sent) => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' };
    const { requests } = await readTraffic(
      recordingOf([{ url: '/f', method: 'POST', headers, body }]),
      new Allowed(['POST /f']),
    );
    expect(decodeURIComponent(requests[0]!.body!.replaceAll('+', ' '))).toBe(sent.replaceAll('+', ' '));
  });

  it('of a process that was killed is read as far as it is whole', async () => {
    const whole = recordingOf(Array.from({ length: 300 }, (_, i) => ({ url: `/${Math.random()}`, t: i })));
    const packed = join(folder, 'killed.ndjson.gz.part');
    writeFileSync(packed, readFileSync(whole).subarray(0, readFileSync(whole).length * 0.7));
    const text = gunzipSync(readFileSync(whole)).toString();
    const plain = join(folder, 'killed.ndjson');
    writeFileSync(plain, text.slice(0, -20));
    const { requests, endsBroken } = await readTraffic(packed, get);
    expect(requests.length).toBeGreaterThan(50);
    expect(requests.length).toBeLessThan(300);
    expect(endsBroken).toBe(true);
    expect(await readTraffic(plain, get)).toMatchObject({ requests: { length: 299 }, endsBroken: true });
    expect(await readTraffic(whole, get)).toMatchObject({ requests: { length: 300 }, endsBroken: false });
    writeFileSync(plain, text.replace('"v":1', ''));
    await expect(readTraffic(plain, get)).rejects.toThrow('killed.ndjson:1 is no JSON');
  });

  it.each([
    ['another version', { v: 2, url: '/' }, 'has version 2, and this reads version 1'],
    ['no method', { url: '/', method: null }, 'has no method or no URL'],
    [
      'nothing else than what cannot be sent',
      { url: '/', method: 'GET\r\n' },
      'holds no request that may be sent. 1 requests are left out, since their method or path cannot be sent: GET�� /',
    ],
  ])('is refused with %s', async (_what, line, message) => {
    await expect(readTraffic(recordingOf([line]), get)).rejects.toThrow(message);
  });

  it('is read without the lines that cannot be sent, and says which', async () => {
    const odd = [
      { url: '*', method: 'OPTIONS' },
      { url: '?x=1' },
      { url: 'http://evil.com/' },
      { url: '/', method: '_OTHER' },
    ];
    const traffic = await readTraffic(recordingOf([...odd, { url: '/a' }]), get);
    expect(traffic.requests.map(({ path }) => path)).toEqual(['/a']);
    expect([...leftOut(traffic)]).toEqual([
      '4 requests are left out, since their method or path cannot be sent: OPTIONS *, GET , GET http://evil.com/',
    ]);
  });

  it('is read without requests whose URL was redacted or cut: they would be others', async () => {
    const cut = { url: '/search?…', redacted: ['url'] };
    const file = recordingOf([
      { url: '/files/[redacted]', route: '/files/:id', redacted: ['url'] },
      cut,
      { ...cut, method: 'POST' },
      { url: '/a', redacted: ['headers.cookie'] },
    ]);
    const traffic = await readTraffic(file, get);
    expect(traffic.requests.map(({ path }) => path)).toEqual(['/a']);
    expect([...leftOut(traffic)]).toEqual([
      '2 requests are left out, since their URL is not in the recording as it was: it held a secret, or was too long: GET /files/:id, GET /search',
      expect.stringMatching(/^1 requests are left out, since they may change data\./),
    ]);
    await expect(readTraffic(recordingOf([cut]), get)).rejects.toThrow(
      /holds no request that may be sent\. 1 requests are left out, since their URL is not in the recording/,
    );
  });

  it('is refused when it is another file', async () => {
    await expect(readTraffic('package.json', get)).rejects.toThrow(
      'package.json:1 is no JSON. Is it a recording of perf.recording?',
    );
    await expect(readTraffic('nowhere', get)).rejects.toThrow('There is no file nowhere.');
  });
});
