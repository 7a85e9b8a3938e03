import { afterEach, describe, expect, it, vi } from 'vitest';
import { PerfError } from '../../src/core/perf.error.js';
import { resolveOptions } from '../../src/perf.options.js';
import { aSink, off, rejected } from './rejected-options.js';

/** The whole message of the error that these options stop the boot with. */
function messageOf(options: unknown): string {
  try {
    resolveOptions(options);
  } catch (error) {
    expect(error).toBeInstanceOf(PerfError);
    expect((error as PerfError).code).toBe('PERF_ERR_OPTION');
    return (error as PerfError).message.replace('PERF_ERR_OPTION: ', '');
  }
  throw new Error(`accepted ${JSON.stringify(options)}`);
}

describe.each(rejected)('`$path`', ({ path, put, must, values, advice = '' }) => {
  it.each(values)('refuses %s and says what it must be', (value, shown) => {
    expect(messageOf(put(value))).toBe(`\`${path}\` must be ${must}, got ${shown}.${advice}`);
  });
});

describe('an unknown option', () => {
  it('is answered with all known names', () => {
    expect(messageOf({ latancy: true })).toMatch(/^`latancy` is not an option\. Known options: .*\blatency, /);
    expect(messageOf({ latency: { slow: 1 } })).toBe(
      `\`latency.slow\` is not an option. Known options: slowMs, overMs, ignore, serverTiming.${off('latency')}`,
    );
  });

  it('that an object has from nowhere else is refused as well, and never looked up on a prototype', () => {
    expect(messageOf(JSON.parse('{"__proto__": 1}'))).toMatch(/^`__proto__` is not an option\. /);
    expect(messageOf({ constructor: 1 })).toMatch(/^`constructor` is not an option\. /);
  });

  it('of hostile length is cut in the message', () => {
    expect(messageOf({ ['x'.repeat(10_000)]: 1 }).length).toBeLessThan(400);
  });
});

describe('`eventLoop.host` and `eventLoop.wedgedMs`', () => {
  it.each([
    [{ host: '0.0.0.0' }, 'host', '`"0.0.0.0"` (string)'],
    [{ wedgedMs: 30_000 }, 'wedgedMs', '`30000` (number)'],
    [{ host: '0.0.0.0', wedgedMs: 500, port: undefined }, 'host', '`"0.0.0.0"` (string)'],
  ])('are refused without the port that they are of: %o', (eventLoop, name, shown) => {
    expect(messageOf({ eventLoop })).toBe(
      `\`eventLoop.${name}\` must be given together with \`port\`, got ${shown}. Nothing listens without it: add \`port\`, for example \`port: 9465\`.`,
    );
  });

  it('have defaults with one', () => {
    const liveness = { port: 9465, host: '127.0.0.1', wedgedMs: 30_000 };
    expect(resolveOptions({ eventLoop: { port: 9465 } }).eventLoop?.liveness).toEqual(liveness);
    expect(resolveOptions({}).eventLoop?.liveness).toBeNull();
  });
});

describe('the options as a whole', () => {
  it.each([
    [null, '`null`'],
    [7, '`7` (number)'],
    ['all', '`"all"` (string)'],
    [[], 'an array of 0'],
    [true, '`true` (boolean)'],
    [() => ({}), 'a function'],
  ])('refuse %s', (options, shown) => {
    expect(messageOf(options)).toBe(`The options must be an object, got ${shown}.`);
  });

  it('take every default when nothing is given', () => {
    for (const given of [undefined, {}, { latency: undefined, sinks: undefined }]) {
      const { latency, sinks, flushTimeoutMs } = resolveOptions(given);
      expect(latency).toEqual({ slowMs: 1000, overMs: [1000, 2000, 5000], ignore: [], serverTiming: false });
      expect(sinks).toMatchObject([{ name: 'logger' }]);
      expect(flushTimeoutMs).toBe(5000);
    }
  });

  it('are null for a feature that is switched off, all defaults for one that is switched on', () => {
    expect(resolveOptions({ latency: false }).latency).toBeNull();
    expect(resolveOptions({ latency: true }).latency).toEqual(resolveOptions({}).latency);
  });

  it('keep what was given, without sharing or changing it', () => {
    const overMs = [10, 20];
    const given = { latency: { overMs }, sinks: [aSink] };
    const resolved = resolveOptions(given);
    overMs.push(30);
    expect(resolved.latency?.overMs).toEqual([10, 20]);
    expect(resolved.sinks).toEqual([aSink]);
    expect(given).toEqual({ latency: { overMs: [10, 20, 30] }, sinks: [aSink] });
  });

  it('are frozen all the way down', () => {
    const resolved = resolveOptions({ latency: { overMs: [10] } });
    expect(Object.isFrozen(resolved)).toBe(true);
    expect(Object.isFrozen(resolved.latency)).toBe(true);
    expect(Object.isFrozen(resolved.latency?.overMs)).toBe(true);
    expect(Object.isFrozen(resolved.sinks)).toBe(true);
  });

  it('never show what an object or a long text holds', () => {
    expect(messageOf({ sinks: { token: 'secret' } })).not.toContain('secret');
    expect(messageOf({ flushTimeoutMs: 'x'.repeat(10_000) }).length).toBeLessThan(200);
  });
});

describe('the environment variable NESTJS_PERF', () => {
  afterEach(() => vi.unstubAllEnvs());

  it.each([
    ['off', false],
    ['OFF', false],
    ['false', false],
    ['0', false],
    ['', true],
    ['on', true],
    ['1', true],
  ])('%j: measured is %j', (given, enabled) => {
    vi.stubEnv('NESTJS_PERF', given);
    expect(resolveOptions({}).enabled).toBe(enabled);
  });

  it('stops the boot with another word', () => {
    vi.stubEnv('NESTJS_PERF', 'disabled');
    expect(() => resolveOptions({})).toThrow(
      'PERF_ERR_OPTION: The environment variable NESTJS_PERF must be `off` or `on`, got `"disabled"` (string).',
    );
  });
});
