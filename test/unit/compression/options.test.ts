import { describe, expect, it } from 'vitest';
import { compressionOption } from '../../../src/compression/compression.options.js';
import { supportedCodings } from '../../../src/compression/rules/accept-encoding.js';
import { SharedResponse } from '../../../src/compression/shared-response/shared-response.decorator.js';

const read = (value: unknown) => compressionOption.read(value, 'compression');
const messageOf = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    return (error as Error).message;
  }
  return 'no error';
};

describe('the compression options', () => {
  it('have their defaults', () => {
    expect(read(undefined)).toEqual({
      thresholdBytes: 1024,
      encodings: supportedCodings,
      levels: { zstd: null, br: null, gzip: null },
      allowSlowLevels: false,
      cache: { maxBytes: 64 * 1024 * 1024 },
    });
    expect(read(true)).toEqual(read(undefined));
    expect(read(false)).toBeNull();
    expect(read({ cache: false })?.cache).toBeNull();
  });

  it('offer what this Node can do of what is asked for, in that order, each once', () => {
    expect(read({ encodings: ['gzip', 'zstd', 'br', 'gzip'] })?.encodings).toEqual(
      ['gzip', 'zstd', 'br'].filter((coding) => (supportedCodings as readonly string[]).includes(coding)),
    );
  });

  it.skipIf(supportedCodings.includes('zstd'))('do not accept zstd alone where there is none', () => {
    expect(messageOf(() => read({ encodings: ['zstd'] }))).toContain(
      '`compression.encodings` must be a list with one of br, gzip, deflate, got an array of 1. This Node has no zstd.',
    );
  });

  const off = 'To switch the feature off, set `compression: false`.';
  it.each([
    [{ levels: { br: 7 } }, 'br', 6, 'brotli 11 takes 8.3 s of CPU for one 3 MB body where brotli 4 takes 61 ms'],
    [{ levels: { gzip: 8 } }, 'gzip', 7, 'gzip 9 takes 27 % more CPU than gzip 6 for 3 % fewer bytes'],
    [{ levels: { zstd: 13 } }, 'zstd', 12, 'zstd 19 takes 2.3 s of CPU for one 3 MB body where zstd 3 takes 20 ms'],
  ] as const)('stop the boot for %o, with the cost', (options, name, safe, cost) => {
    const given = Object.values(options.levels)[0];
    expect(messageOf(() => read(options))).toBe(
      `PERF_ERR_OPTION: \`compression.levels.${name}\` must be at most ${safe} for bodies that are made for each request, got \`${given}\` (number). ` +
        `The cost: ${cost}. Lower it, or set \`compression.allowSlowLevels: true\` if such bodies are made rarely.`,
    );
    expect(read({ ...options, allowSlowLevels: true })?.levels).toMatchObject(options.levels);
  });

  it('allow the ceilings themselves', () => {
    expect(read({ levels: { br: 6, gzip: 7, zstd: 12 } })?.levels).toEqual({ br: 6, gzip: 7, zstd: 12 });
  });

  it.each([
    [{ levels: { br: 12 } }, '`compression.levels.br` must be a whole number from 0 to 11, got `12` (number).'],
    [{ levels: { gzip: 0 } }, '`compression.levels.gzip` must be a whole number from 1 to 9, got `0` (number).'],
    [
      { thresholdBytes: -1 },
      '`compression.thresholdBytes` must be a whole number of bytes of 0 or more, got `-1` (number).',
    ],
    [
      { encodings: ['snappy'] },
      '`compression.encodings[0]` must be one of `"zstd"`, `"br"`, `"gzip"`, `"deflate"`, got `"snappy"` (string).',
    ],
    [
      { encodings: [] },
      '`compression.encodings` must be a list of `"zstd"`, `"br"`, `"gzip"`, `"deflate"` with at least one entry, got an array of 0. To send everything unencoded, set `compression: false`.',
    ],
  ])('say what is wrong with %o', (options, message) => {
    expect(messageOf(() => read(options))).toBe(`PERF_ERR_OPTION: ${message}\n${off}`);
  });
});

describe('@SharedResponse()', () => {
  const decorate = (options: never) => () => {
    class Feed {
      @SharedResponse(options)
      all(): void {}
    }
    return Feed;
  };

  // A `varyBy` under another name would give everybody the answer of one.
  it.each([
    [{}, '`Feed.all @SharedResponse.ttlMs` must be a number of milliseconds above 0, got `undefined`.'],
    [{ ttlMs: 0 }, '`Feed.all @SharedResponse.ttlMs` must be a number of milliseconds above 0, got `0` (number).'],
    [
      { ttlMs: 1, varyBy: 'user' },
      '`Feed.all @SharedResponse.varyBy` must be a function of the request that returns a string, got `"user"` (string).',
    ],
    [
      { ttlMs: 1, waitMs: 0 },
      '`Feed.all @SharedResponse.waitMs` must be a number of milliseconds above 0 and at most 2147483647, got `0` (number).',
    ],
    [
      { ttlMs: 1, forEveryone: 'yes' },
      '`Feed.all @SharedResponse.forEveryone` must be `true` or `false`, got `"yes"` (string).',
    ],
    [{ ttlMs: 1, vary: () => 'user' }, '`Feed.all @SharedResponse.vary` is not an option. Known options: '],
  ])('refuses %o where it stands', (options, message) => {
    expect(messageOf(decorate(options as never))).toContain(`PERF_ERR_OPTION: ${message}`);
  });
});
