import { object, optional, value } from '../../core/option.js';
import type { Unit } from '../../core/record.js';
import { within } from '../../core/within.js';
import { coreUserClass, type StatsigUserClass } from './core-user.js';
import { reasonWithoutKey } from './reason.js';
import type { GateAnswer, GateClient } from '../../experiments/gates/gate-client.js';

/** A gate as either SDK evaluates it. */
interface StatsigGate {
  readonly value: boolean;
  readonly ruleID: string;
  /** `statsig-node` */
  readonly evaluationDetails?: { readonly reason: string } | null;
  /** `@statsig/statsig-node-core` */
  readonly details?: { readonly reason: string };
}

/**
 * The part of a Statsig client that gates need: `Statsig` or `StatsigServer` of `statsig-node`, or `Statsig` of
 * `@statsig/statsig-node-core`. Structural, so neither package has to be installed for the other's users.
 */
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
   * Makes the SDK's user from the unit: when rules look at more than ids, such as a country or a plan.
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
  const { user } = table.read(options, 'statsigGates');
  const users = user === null ? new StatsigUsers(client) : null;
  const userOf = user ?? ((unit: Unit) => users!.of(unit));
  return {
    check(gate: string, unit: Unit): GateAnswer {
      try {
        const { value, ruleID, evaluationDetails, details } = client.getFeatureGate(userOf(unit) as never, gate);
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

/** Users as the client's SDK wants them: plain objects, or instances of the core SDK's own class. */
class StatsigUsers {
  private User: StatsigUserClass | null = null;
  private missing: string | null = null;
  private readonly core: boolean;

  constructor(client: StatsigGateClient) {
    this.core = typeof client.flushEvents === 'function';
    // The application has loaded the package already, so this settles long before the first request.
    if (this.core) void this.load();
  }

  of({ userId, customIds }: Unit): object {
    const fields = { userID: userId, ...(customIds === undefined ? {} : { customIDs: customIds }) };
    if (!this.core) return fields;
    if (this.User === null) throw new Error(this.missing ?? 'the SDK is not loaded yet');
    return new this.User(fields);
  }

  private async load(): Promise<void> {
    try {
      this.User = await coreUserClass('statsigGates()');
    } catch (error) {
      this.missing = reasonWithoutKey(error);
    }
  }
}
