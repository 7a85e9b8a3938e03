import type { Unit } from '../../core/record.js';
import { optionError } from '../../core/option.js';
import { hashText } from '../unit-hash.js';
import type { GateAnswer, GateClient } from './gate-client.js';

/** Each gate draws anew: variants of two gates are independent. */
const GATE_SEED = 0x67617465;

/**
 * Gates without a vendor: `true`, `false`, or the share of units that is on (0 to 1), chosen by a hash of the gate's name
 * and the unit's `userId`, so a unit keeps its variant in every process and after every restart.
 * @throws PERF_ERR_OPTION for what is neither
 */
export function staticGates(gates: Readonly<Record<string, boolean | number>>): GateClient {
  // An array or a `Map` would lose its gates.
  if (typeof gates !== 'object' || gates === null || Symbol.iterator in gates)
    throw optionError('staticGates', 'a plain object of gates', gates);
  const shares = new Map<string, { share: number; seed: number }>();
  for (const [name, value] of Object.entries(gates)) {
    const share = typeof value === 'boolean' ? Number(value) : value;
    if (typeof share !== 'number' || !(share >= 0 && share <= 1)) {
      throw optionError(`staticGates.${name}`, '`true`, `false` or a share from 0 to 1', value);
    }
    shares.set(name, { share, seed: hashText(name, GATE_SEED) });
  }
  return {
    check(gate: string, { userId }: Unit): GateAnswer {
      const entry = shares.get(gate);
      if (entry === undefined) return { on: false, problem: 'staticGates() does not name it' };
      return { on: hashText(userId, entry.seed) / 0x1_0000_0000 < entry.share, rule: `static:${entry.share}` };
    },
    share: (gate) => shares.get(gate)?.share ?? null,
  };
}
