import { describe, expect, it } from 'vitest';
import { staticGates } from '../../../src/index.js';
import { resolveOptions } from '../../../src/perf.options.js';

const gates = staticGates({ faster: 0.5 });
const unit = () => ({ userId: 'u' });
const CLIENTS =
  '`staticGates({ … })`, `statsigGates(client)`, `openFeatureGates(client)`, or an object with a `check()` method';

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
      stop: null,
    });
    const all = { gates, unit, switchback: { gate: 'faster', washoutMs: 0 } };
    expect(resolveOptions({ experiments: all }).experiments).toEqual({
      ...all,
      stop: null,
      switchback: { gate: 'faster', sliceMs: 60_000, washoutMs: 0 },
    });
  });

  it.each<[object, string]>([
    [{ gates: undefined }, `.gates\` must be a gate client: ${CLIENTS}, got \`undefined\`.`],
    [{ gates: { on: 1 } }, `.gates\` must be a gate client: ${CLIENTS}, got an object.`],
    [{ unit: 'user' }, '.unit` must be a function, got `"user"` (string).'],
    [{ switchback: {} }, '.switchback.gate` must be the name of a gate, got `undefined`.'],
    [
      { switchback: { gate: 'faster', sliceMs: 0 } },
      '.switchback.sliceMs` must be a number of milliseconds above 0 and at most 2147483647, got `0` (number).',
    ],
    [
      { switchback: { gate: 'faster', sliceMs: 5_000 } },
      '.switchback.washoutMs` must be shorter than `sliceMs` (5000), got `5000` (number).',
    ],
  ])('refuses %o', (wrong, message) => {
    const experiments = { gates, ...wrong };
    expect(() => resolveOptions({ experiments })).toThrow(
      expect.objectContaining({
        code: 'PERF_ERR_OPTION',
        message: `PERF_ERR_OPTION: \`experiments${message}\nTo switch the feature off, set \`experiments: false\`.`,
      }),
    );
  });

  it('is not `true`, because gates come from somewhere', () => {
    expect(() => resolveOptions({ experiments: true as never })).toThrow(
      `PERF_ERR_OPTION: \`experiments.gates\` must be a gate client: ${CLIENTS}, got \`undefined\`.`,
    );
  });
});
