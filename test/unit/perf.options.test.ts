import { describe, expect, it } from 'vitest';
import { PerfError } from '../../src/core/perf.error.js';
import type { PerfSink } from '../../src/core/sink.js';
import { resolveOptions } from '../../src/perf.options.js';

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

const off = (feature: string) => `\nTo switch the feature off, set \`${feature}: false\`.`;

/** Every value that no number option takes, and how the message shows it. */
const notAboveZero: [value: unknown, shown: string][] = [
  [-5, '`-5` (number)'],
  [0, '`0` (number)'],
  [Number.NaN, '`NaN` (number)'],
  [Number.POSITIVE_INFINITY, '`Infinity` (number)'],
  ['5', '`"5"` (string)'],
  [5n, '`5n` (bigint)'],
  [true, '`true` (boolean)'],
  [null, '`null`'],
  [[5], 'an array of 1'],
  [{ ms: 5 }, 'an object'],
  [() => 5, 'a function'],
  [Symbol('5'), 'a symbol'],
];
const notBoolean: [value: unknown, shown: string][] = [
  ['true', '`"true"` (string)'],
  [1, '`1` (number)'],
  [0, '`0` (number)'],
  [null, '`null`'],
  [{}, 'an object'],
];
const notAList: [value: unknown, shown: string][] = [
  ['/health', '`"/health"` (string)'],
  [7, '`7` (number)'],
  [null, '`null`'],
  [{ 0: '/health' }, 'an object'],
  [new Set(['/health']), 'an object'],
];

const publish = (): void => {};
const aSink: PerfSink = { name: 'mine', publish };

interface Rejected {
  path: string;
  /** The options object with `value` at the path. */
  put: (value: unknown) => object;
  must: string;
  values: [value: unknown, shown: string][];
  advice?: string;
}

const rejected: Rejected[] = [
  {
    path: 'latency',
    put: (latency) => ({ latency }),
    must: '`true`, `false` or an object',
    values: [
      [null, '`null`'],
      ['yes', '`"yes"` (string)'],
      [0, '`0` (number)'],
      [[], 'an array of 0'],
    ],
    advice: ` ${off('latency').trim()}`,
  },
  {
    path: 'latency.slowMs',
    put: (slowMs) => ({ latency: { slowMs } }),
    must: 'a number of milliseconds above 0',
    values: notAboveZero,
    advice: off('latency'),
  },
  {
    path: 'latency.overMs',
    put: (overMs) => ({ latency: { overMs } }),
    must: 'a list of milliseconds, ascending',
    values: [...notAList, [[5, 5], 'an array of 2'], [[5, 1], 'an array of 2']],
    advice: off('latency'),
  },
  {
    path: 'latency.overMs[1]',
    put: (second) => ({ latency: { overMs: [1, second] } }),
    must: 'a number of milliseconds above 0',
    values: [...notAboveZero, [undefined, '`undefined`']],
    advice: off('latency'),
  },
  {
    path: 'latency.ignore',
    put: (ignore) => ({ latency: { ignore } }),
    must: 'a list of route patterns',
    values: notAList,
    advice: off('latency'),
  },
  {
    path: 'latency.ignore[0]',
    put: (first) => ({ latency: { ignore: [first] } }),
    must: 'a route pattern that starts with `/`',
    values: [
      ['health', '`"health"` (string)'],
      ['', '`""` (string)'],
      [/health/, 'an object'],
      [undefined, '`undefined`'],
    ],
    advice: off('latency'),
  },
  {
    path: 'latency.serverTiming',
    put: (serverTiming) => ({ latency: { serverTiming } }),
    must: '`true` or `false`',
    values: notBoolean,
    advice: off('latency'),
  },
  {
    path: 'sinks',
    put: (sinks) => ({ sinks }),
    must: 'a list of sinks',
    values: [
      [aSink, 'an object'],
      [null, '`null`'],
      ['logger', '`"logger"` (string)'],
      [false, '`false` (boolean)'],
    ],
  },
  {
    path: 'sinks[1]',
    put: (second) => ({ sinks: [aSink, second] }),
    must: 'a sink (an object with a `name` and a `publish()` method), or the class or injection token of one',
    values: [
      ['', '`""` (string)'],
      [7, '`7` (number)'],
      [{ name: 'no publish' }, 'an object'],
      [{ publish }, 'an object'],
      [undefined, '`undefined`'],
      [null, '`null`'],
    ],
  },
  {
    path: 'unit',
    put: (unit) => ({ unit }),
    must: 'a function of the request',
    values: [
      ['user.id', '`"user.id"` (string)'],
      [null, '`null`'],
    ],
  },
  {
    path: 'release',
    put: (release) => ({ release }),
    must: 'a text of 1 to 200 characters',
    values: [
      ['', '`""` (string)'],
      [12, '`12` (number)'],
      [null, '`null`'],
    ],
  },
  {
    path: 'context',
    put: (context) => ({ context }),
    must: 'one of `true`, `false`, `"auto"`',
    values: [
      ['on', '`"on"` (string)'],
      [1, '`1` (number)'],
      [null, '`null`'],
      [{}, 'an object'],
    ],
  },
  {
    path: 'flushTimeoutMs',
    put: (flushTimeoutMs) => ({ flushTimeoutMs }),
    must: 'a number of milliseconds above 0 and at most 2147483647',
    values: [...notAboveZero, [2 ** 31, '`2147483648` (number)']],
  },
];

describe.each(rejected)('`$path`', ({ path, put, must, values, advice = '' }) => {
  it.each(values)('refuses %s and says what it must be', (value, shown) => {
    expect(messageOf(put(value))).toBe(`\`${path}\` must be ${must}, got ${shown}.${advice}`);
  });
});

describe('an unknown option', () => {
  it.each([
    [{ latancy: true }, '`latancy` is not an option. Did you mean `latency`?'],
    [{ sink: [] }, '`sink` is not an option. Did you mean `sinks`?'],
    [{ flushTimeout: 1 }, '`flushTimeout` is not an option. Did you mean `flushTimeoutMs`?'],
    [{ latency: { slow: 1 } }, `\`latency.slow\` is not an option. Did you mean \`latency.slowMs\`?${off('latency')}`],
    [
      { latency: { OVERMS: [1] } },
      `\`latency.OVERMS\` is not an option. Did you mean \`latency.overMs\`?${off('latency')}`,
    ],
    [
      { latency: { serverTimings: true } },
      `\`latency.serverTimings\` is not an option. Did you mean \`latency.serverTiming\`?${off('latency')}`,
    ],
  ])('%o is answered with the nearest known name', (options, message) => {
    expect(messageOf(options)).toBe(message);
  });

  it('that resembles none is answered with all known names', () => {
    expect(messageOf({ latency: { qqqqqqqqqqqq: 1 } })).toBe(
      `\`latency.qqqqqqqqqqqq\` is not an option. Known options: slowMs, overMs, ignore, serverTiming.${off('latency')}`,
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
    for (const given of [undefined, {}, { latency: undefined, sinks: undefined, context: undefined }]) {
      const { latency, sinks, context, flushTimeoutMs } = resolveOptions(given);
      expect(latency).toEqual({ slowMs: 1000, overMs: [1000, 2000, 5000], ignore: [], serverTiming: false });
      expect(sinks).toMatchObject([{ name: 'logger' }]);
      expect([context, flushTimeoutMs]).toEqual(['auto', 5000]);
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
    expect(messageOf({ context: 'x'.repeat(10_000) }).length).toBeLessThan(200);
  });
});
