import { describe, expect, it } from 'vitest';
import { statsigGates } from '../../../../src/entries/statsig.js';

describe('statsigGates when the SDK fails', () => {
  const failure = (): never => {
    throw new Error('GET https://api.statsigcdn.com/v1/download_config_specs/secret-AbC-123.json failed');
  };

  it('answers off with the reason, without the secret key that the SDK has in its URLs', () => {
    const gates = statsigGates({ getFeatureGate: failure });
    expect(gates.check('fast_json', { userId: 'u1' })).toEqual({
      on: false,
      problem: 'GET https://api.statsigcdn.com/v1/download_config_specs/secret-….json failed',
    });
  });

  it('tells why its last flush failed, without the secret key', async () => {
    const gates = statsigGates({ getFeatureGate: failure, flush: async () => failure() });
    await expect(gates.close!()).rejects.toThrow(/secret-…\.json failed$/);
  });
});

describe('statsigGates()', () => {
  // Every gate of such a client would be off, and every user on the old code.
  it.each<[unknown, object | undefined, string]>([
    [
      undefined,
      undefined,
      '`statsigGates(client)` must be a Statsig client: an object with `getFeatureGate()`, got `undefined`.',
    ],
    [
      {},
      undefined,
      '`statsigGates(client)` must be a Statsig client: an object with `getFeatureGate()`, got an object.',
    ],
    [
      { getFeatureGate() {} },
      { user: 'u1' },
      '`statsigGates.user` must be a function of the unit, got `"u1"` (string).',
    ],
    [{ getFeatureGate() {} }, { users: () => ({}) }, '`statsigGates.users` is not an option. Known options: '],
  ])('refuses %j with %j', (client, options, message) => {
    expect(() => statsigGates(client as never, options as never)).toThrow(`PERF_ERR_OPTION: ${message}`);
  });
});
