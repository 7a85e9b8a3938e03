import { describe, expect, expectTypeOf, it } from 'vitest';
import type { Statsig, StatsigServer } from 'statsig-node';
import { Experiment, PerfError, Variant } from '../../../src/index.js';
import type { StatsigGateClient } from '../../../src/entries/statsig.js';

describe('@Experiment and @Variant', () => {
  it.each([[''], [undefined], [7]])('refuse %s for the name of a gate, where they stand', (gate) => {
    const given = gate === '' ? '`""` (string)' : gate === 7 ? '`7` (number)' : '`undefined`';
    for (const [name, decorate] of [
      ['@Experiment()', Experiment],
      ['@Variant()', Variant],
    ] as const) {
      const misuse = (): unknown => decorate(gate as string);
      expect(misuse).toThrow(PerfError);
      expect(misuse).toThrow(`PERF_ERR_DECORATOR: ${name} must be given the name of a gate, got ${given}.`);
    }
  });

  it('refuses a class without routes', () => {
    class Service {
      serve(): void {}
    }
    expect(() => Experiment('gate')(Service)).toThrow(
      'PERF_ERR_DECORATOR: @Experiment() on "Service" finds no route methods. Put it on a controller with routes, or on a handler.',
    );
  });
});

it('the clients of statsig-node fit statsigGates()', () => {
  expectTypeOf<StatsigServer>().toExtend<StatsigGateClient>();
  expectTypeOf<typeof Statsig>().toExtend<StatsigGateClient>();
});
