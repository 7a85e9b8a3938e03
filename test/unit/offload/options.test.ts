import { describe, expect, it } from 'vitest';
import { Offload } from '../../../src/entries/offload.js';
import { offload } from '../../../src/entries/offload.js';
import { computePoolSize, offloadOption } from '../../../src/offload/offload.options.js';

const module = new URL('file:///app/offload.module.js');

describe('offload()', () => {
  it('takes a URL or an absolute path', () => {
    for (const given of [module, module.href, '/app/offload.module.js']) {
      expect(offloadOption.read({ module: given }, 'offload').module.href).toBe(module.href);
    }
    expect(offload({ module })).toMatchObject({ name: 'offload' });
  });

  it.each<[object | undefined, string]>([
    [undefined, '`offload.module` must be a file URL or an absolute path, got `undefined`.'],
    [
      { module: './offload.module.js' },
      '`offload.module` must be a file URL or an absolute path, got `"./offload.module.js"` (string).',
    ],
    [
      { module: new URL('https://example.org/a.js') },
      '`offload.module` must be a file URL or an absolute path, got an object.',
    ],
    [{ module, threads: 0 }, '`offload.threads` must be a whole number of threads from 1 to 1000, got `0` (number).'],
    [
      { module, maxPending: -1 },
      '`offload.maxPending` must be a whole number of calls of 0 or more, got `-1` (number).',
    ],
    [
      { module, idleMs: 0 },
      '`offload.idleMs` must be a number of milliseconds above 0 and at most 2147483647, got `0` (number).',
    ],
    [
      { module, heapLimitMb: '64' },
      '`offload.heapLimitMb` must be a number of megabytes above 0, got `"64"` (string).',
    ],
    [{ module, warm: 1.5 }, '`offload.warm` must be a whole number of threads from 0 to 1000, got `1.5` (number).'],
    [{ module, inline: 'yes' }, '`offload.inline` must be `true` or `false`, got `"yes"` (string).'],
    [{ module, thread: 2 }, '`offload.thread` is not an option. Known options: '],
  ])('refuses %o', (options, message) => {
    expect(() => offload(options as never)).toThrow(`PERF_ERR_OPTION: ${message}`);
  });

  it.each<[limit: number | null, request: number | null, machine: number | null, threads: number]>([
    [0.5, null, 8, 1],
    [1, null, 8, 1],
    [2, null, 8, 1],
    [3, null, 8, 2],
    [4.5, null, 64, 3],
    [16, null, 64, 4],
    // Without a limit the request tells what the machine's scheduler has been asked for.
    [null, 2.5, 64, 1],
    [null, 4, 64, 3],
    [null, null, 64, 4],
    [64, null, 2, 1],
    [null, null, null, 1],
  ])(
    'with a limit of %s cores, a request of %s and %s CPUs it starts %i threads',
    (limit, request, machine, threads) => {
      const options = offloadOption.read({ module }, 'offload');
      expect(computePoolSize(options, { limit, request, machine }).threads).toBe(threads);
    },
  );

  it('lets 32 calls wait for each thread, and starts as many as are to be warm', () => {
    const cores = { limit: 1, request: null, machine: 4 };
    const of = (options: object) => computePoolSize(offloadOption.read({ module, ...options }, 'offload'), cores);
    expect(of({})).toMatchObject({ threads: 1, maxPending: 32, warm: 0 });
    expect(of({ warm: 3 })).toMatchObject({ threads: 3, maxPending: 96, warm: 3 });
    expect(of({ threads: 6, maxPending: 5, warm: 9 })).toMatchObject({ threads: 6, maxPending: 5, warm: 6 });
  });
});

describe('@Offload()', () => {
  it('refuses options that are none', () => {
    class Reports {}
    const decorate = (options: object) => () =>
      Offload(options)(Reports.prototype, 'render', { value: async () => {} });
    expect(decorate({ timeoutMs: 0 })).toThrow(
      'PERF_ERR_OPTION: `Reports.render @Offload.timeoutMs` must be a number of milliseconds above 0',
    );
    expect(decorate({ when: true })).toThrow(
      '`Reports.render @Offload.when` must be a function of the arguments, got `true` (boolean).',
    );
  });

  it('refuses what is no method of a provider', () => {
    const on = (target: object, name: string | symbol, value: unknown) => () =>
      Offload()(target, name, { value } as TypedPropertyDescriptor<() => Promise<void>>);
    class Reports {}
    const method = async (): Promise<void> => {};
    for (const misplaced of [
      on(Reports, 'render', method),
      on(Reports.prototype, Symbol('render'), method),
      on(Reports.prototype, 'render', 5),
      () => Offload()(Reports.prototype, 'render', undefined as never),
    ]) {
      expect(misplaced).toThrow(
        /PERF_ERR_DECORATOR: `@Offload\(\)` on "Reports.*render.*": it must be a method of an instance, with a name/,
      );
    }
  });
});
