import type { PerfSink } from '../../src/core/sink.js';

export const off = (feature: string) => `\nTo switch the feature off, set \`${feature}: false\`.`;

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
export const aSink: PerfSink = { name: 'mine', publish };

interface Rejected {
  path: string;
  /** The options object with `value` at the path. */
  put: (value: unknown) => object;
  must: string;
  values: [value: unknown, shown: string][];
  advice?: string;
}

export const rejected: Rejected[] = [
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
    path: 'flushTimeoutMs',
    put: (flushTimeoutMs) => ({ flushTimeoutMs }),
    must: 'a number of milliseconds above 0 and at most 2147483647',
    values: [...notAboveZero, [2 ** 31, '`2147483648` (number)']],
  },
];
