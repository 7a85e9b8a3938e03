import { describe, expect, it } from 'vitest';
import { staticGates } from '../../../src/index.js';
import { resolveOptions } from '../../../src/perf.options.js';

const gates = staticGates({ faster: 0.5 });
const unit = () => ({ userId: 'u' });

describe('`experiments`', () => {
  it('is off unless it is asked for', () => {
    expect(resolveOptions({}).experiments).toBeNull();
    expect(resolveOptions({ experiments: false }).experiments).toBeNull();
  });

  it('takes its defaults, and keeps what is given', () => {
    expect(resolveOptions({ experiments: { gates } }).experiments).toEqual({
      gates,
      unit: null,
      switchback: null,
      prePeriodMs: 0,
    });
    const all = { gates, unit, switchback: { gate: 'faster', washoutMs: 0 }, prePeriodMs: 60_000 };
    expect(resolveOptions({ experiments: all }).experiments).toEqual({
      ...all,
      switchback: { gate: 'faster', sliceMs: 60_000, washoutMs: 0 },
    });
  });

  const table: [string, unknown, string][] = [
    [
      '`true`, because gates come from somewhere',
      true,
      '`experiments` must be `false` or an object with `gates`, got `true` (boolean). Gates come from `staticGates({ … })` or `statsigGates(client)`.',
    ],
    ['no gates', {}, '`experiments.gates` must be a gate client: an object with a `check()` method, got `undefined`.'],
    [
      'gates that cannot be checked',
      { gates: { faster: true } },
      '`experiments.gates` must be a gate client: an object with a `check()` method, got an object.',
    ],
    [
      'a unit that is no function',
      { gates, unit: 'user' },
      '`experiments.unit` must be a function, got `"user"` (string).',
    ],
    [
      'a pre-period that is no time',
      { gates, prePeriodMs: -1 },
      '`experiments.prePeriodMs` must be a number of milliseconds of 0 or more, got `-1` (number).',
    ],
    [
      'a switchback without a gate',
      { gates, switchback: {} },
      '`experiments.switchback.gate` must be the name of a gate, got `undefined`.',
    ],
    [
      'slices of no length',
      { gates, switchback: { gate: 'faster', sliceMs: 0 } },
      '`experiments.switchback.sliceMs` must be a number of milliseconds above 0 and at most 2147483647, got `0` (number).',
    ],
    [
      'a wash-out as long as the slice',
      { gates, switchback: { gate: 'faster', sliceMs: 5_000 } },
      '`experiments.switchback.washoutMs` must be shorter than `sliceMs` (5000), got `5000` (number).',
    ],
    [
      'a misspelt option',
      { gates, switchBack: {} },
      '`experiments.switchBack` is not an option. Did you mean `experiments.switchback`?',
    ],
  ];
  it.each(table)('refuses %s', (_name, experiments, message) => {
    expect(() => resolveOptions({ experiments })).toThrow(
      expect.objectContaining({ code: 'PERF_ERR_OPTION', message: `PERF_ERR_OPTION: ${message}` }),
    );
  });
});
