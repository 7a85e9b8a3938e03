import { Cluster } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { bullmqStore } from '../../../src/entries/bullmq.js';
import { cache } from '../../../src/entries/cache.js';
import { record } from '../../../src/entries/record.js';
import { redisCache, redisHistory } from '../../../src/entries/redis.js';
import { connectionOptions } from '../../../src/entries/redis/connection.js';
import { fileHistory } from '../../../src/index.js';

const ENTRIES = [
  ['bullmqStore', bullmqStore],
  ['redisCache', redisCache],
  ['redisHistory', redisHistory],
] as readonly (readonly [string, (options: never) => object])[];
const EXPECTED = 'a URL (`redis:` or `rediss:`), ioredis options or an ioredis client';
const NODE_REDIS = { duplicate: () => ({}), sendCommand: () => {}, multi: () => ({}), options: {} };
const CLUSTER = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true });

describe.each(ENTRIES)('%s', (name, entry) => {
  it.each([
    'redis://127.0.0.1:6379',
    'rediss://user:secret@cache/3',
    { host: '127.0.0.1', url: undefined },
    { url: 'redis://127.0.0.1:6379', keyPrefix: 'app:' },
    { duplicate: () => ({}), pipeline: () => ({}) },
  ])('takes %j', (connection) => {
    expect(() => entry({ connection, prefix: 'shop' } as never)).not.toThrow();
  });

  it('takes a Cluster', () => {
    expect(() => entry({ connection: CLUSTER } as never)).not.toThrow();
    expect(() => entry({ connection: CLUSTER, prefix: 'app:{shop}' } as never)).not.toThrow();
  });

  it.each([
    [undefined, '`undefined`'],
    ['localhost:6379', '`"localhost:6379"` (string)'],
    // The log of the boot must not show it.
    ['http://:hunter2@localhost', '`"[redacted]"` (string)'],
    ['redis://127.0.0.1/cache', '`"redis://127.0.0.1/cache"` (string)'],
    [{ url: 'localhost' }, 'an object'],
    [[], 'an array of 0'],
    [NODE_REDIS, 'an object'],
  ])('refuses the connection %j', (connection, given) => {
    expect(() => entry({ connection } as never)).toThrow(
      `PERF_ERR_OPTION: \`${name}.connection\` must be ${EXPECTED}, got ${given}.`,
    );
  });

  it('refuses a prefix that is no text', () => {
    for (const [prefix, given] of [
      ['', '`""` (string)'],
      [' ', '`" "` (string)'],
      [5, '`5` (number)'],
    ]) {
      expect(() => entry({ connection: {}, prefix } as never)).toThrow(
        `PERF_ERR_OPTION: \`${name}.prefix\` must be a text that is not empty, got ${given}.`,
      );
    }
  });
});

it.each(['shop', '{}', '{shop', '{}{shop}'])('a queue has a hash tag in a Cluster, which %j is not', (prefix) => {
  expect(() => bullmqStore({ connection: CLUSTER, prefix })).toThrow(
    `PERF_ERR_OPTION: \`bullmqStore.prefix\` must be a text with a hash tag, such as \`{bull}\`, for a Cluster, got \`"${prefix}"\` (string).`,
  );
});

it.each([
  ['cache.maxBytes', (maxBytes: never) => cache({ maxBytes }), 'above 0'],
  ['record.maxBytes', (maxBytes: never) => record({ directory: '/tmp', maxBytes }), 'above 0'],
  ['record.maxBodyBytes', (maxBodyBytes: never) => record({ directory: '/tmp', maxBodyBytes }), 'from 0 to 1000000'],
  [
    'bullmqStore.spillMaxBytes',
    (spillMaxBytes: never) => bullmqStore({ connection: {}, spillMaxBytes }),
    'of 1 or more',
  ],
] as const)('%s is a whole number of bytes', (path, make, range) => {
  for (const [given, text] of [
    ['64 MiB', '`"64 MiB"` (string)'],
    [1.5, '`1.5` (number)'],
    [-1, '`-1` (number)'],
  ]) {
    expect(() => make(given as never)).toThrow(
      `PERF_ERR_OPTION: \`${path}\` must be a whole number of bytes ${range}, got ${text}.`,
    );
  }
});

it.each([
  ['record.directory', (folder: never) => record({ directory: folder })],
  ['fileHistory.directory', (folder: never) => fileHistory({ directory: folder })],
  ['bullmqStore.spillPath', (folder: never) => bullmqStore({ connection: {}, spillPath: folder })],
] as const)('%s is the path of a folder', (path, make) => {
  for (const [given, text] of [
    [' ', '`" "` (string)'],
    [7, '`7` (number)'],
  ]) {
    expect(() => make(given as never)).toThrow(
      `PERF_ERR_OPTION: \`${path}\` must be the path of a folder, got ${text}.`,
    );
  }
});

it('reads a URL as ioredis does', () => {
  expect(connectionOptions('rediss://ada:s%40crt@[::1]:7000/3?family=6')).toEqual({
    host: '::1',
    port: 7000,
    db: 3,
    username: 'ada',
    password: 's@crt',
    tls: {},
    family: 6,
  });
  expect(connectionOptions({ url: 'redis://cache', db: 2, keyPrefix: 'app:' })).toEqual({
    host: 'cache',
    port: 6379,
    db: 2,
    keyPrefix: 'app:',
  });
});

it('redisHistory() says where it found no Redis', async () => {
  const store = redisHistory({ connection: { host: '127.0.0.1', port: 1 } });
  await expect(store.open({} as never)).rejects.toThrow('connect ECONNREFUSED 127.0.0.1:1');
});
