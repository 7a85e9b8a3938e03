import { object, optional, value } from '../../core/option.js';
import type { Unit } from '../../core/record.js';
import { within } from '../../core/within.js';
import { coreUserClass, reasonWithoutKey, type StatsigUserClass, type StatsigUserFields } from './client.js';
import type { GateAnswer, GateClient } from '../../experiments/gates/gate-client.js';

interface StatsigGate {
  readonly value: boolean;
  readonly ruleID: string;
  /** `statsig-node` */
  readonly evaluationDetails?: { readonly reason: string } | null;
  /** `@statsig/statsig-node-core` */
  readonly details?: { readonly reason: string };
}

/** The part of a client of either SDK that gates need; structural, as `StatsigClient` is. */
export interface StatsigGateClient {
  // `never`: the two SDKs' user types have nothing in common that both accept.
  getFeatureGate(user: never, gate: string): StatsigGate;
  /** Legacy. With a timeout it posts once. */
  flush?(timeoutMs?: number): Promise<unknown>;
  /** Core. */
  flushEvents?(): Promise<unknown>;
}

export interface StatsigGatesOptions {
  /**
   * Makes the SDK's user from the unit: when rules read more than ids, such as a country or a plan.
   * @default a user with `userID` and `customIDs`
   */
  user?: (unit: Unit) => object;
}

const clientOption = value<StatsigGateClient>(
  'a Statsig client: an object with `getFeatureGate()`',
  (given) => typeof (given as Partial<StatsigGateClient> | null | undefined)?.getFeatureGate === 'function',
);
const table = object({
  user: optional(value<(unit: Unit) => object>('a function of the unit', (given) => typeof given === 'function')),
});

/** Reasons under which the SDK answers `false` without having drawn: not loaded, no such gate, a rule it cannot evaluate. */
const NO_DECISION = /uninitialized|novalues|unrecognized|unsupported|error/i;
/** How long the last exposures may take on shutdown. */
const FLUSH_TIMEOUT_MS = 2_000;

/**
 * Statsig's gates. Evaluated in the process, synchronously; the SDK logs the exposure. Never throws: before the client is
 * initialised, after its shutdown and for an unknown gate the answer is off, with the reason. On shutdown exposures are
 * flushed; the client stays yours to shut down.
 * @throws PERF_ERR_OPTION for what is no client, or no option
 */
export function statsigGates(client: StatsigGateClient, options: StatsigGatesOptions = {}): GateClient {
  clientOption.read(client, 'statsigGates(client)');
  const makeUser = table.read(options, 'statsigGates').user ?? chooseUsers(client);
  return {
    check(gate: string, unit: Unit): GateAnswer {
      try {
        const { value, ruleID, evaluationDetails, details } = client.getFeatureGate(makeUser(unit) as never, gate);
        const reason = evaluationDetails?.reason ?? details?.reason ?? '';
        if (NO_DECISION.test(reason)) return { on: false, problem: `Statsig has no such decision (${reason})` };
        return { on: value, rule: ruleID };
      } catch (error) {
        return { on: false, problem: reasonWithoutKey(error) };
      }
    },
    async close(): Promise<void> {
      try {
        await within(FLUSH_TIMEOUT_MS, async () => client.flushEvents?.() ?? client.flush?.(FLUSH_TIMEOUT_MS));
      } catch (error) {
        // oxlint-disable-next-line preserve-caught-error -- the key that is taken out would come back with the cause
        throw new Error(reasonWithoutKey(error));
      }
    },
  };
}

/** Makes users as the client's SDK wants them: plain objects, or instances of the core SDK's own class. */
function chooseUsers(client: StatsigGateClient): (unit: Unit) => object {
  const listFields = ({ userId, customIds }: Unit): StatsigUserFields =>
    customIds === undefined ? { userID: userId } : { userID: userId, customIDs: customIds };
  if (typeof client.flushEvents !== 'function') return listFields;
  let User: StatsigUserClass | null = null;
  let missing = 'the SDK is not loaded yet';
  // The application has loaded the package already, so this settles long before the first request.
  coreUserClass('statsigGates()').then(
    (loaded) => (User = loaded),
    (error: unknown) => (missing = reasonWithoutKey(error)),
  );
  return (unit) => {
    if (User === null) throw new Error(missing);
    return new User(listFields(unit));
  };
}
