import { value } from '../../core/option.js';
import { describeReason } from '../../core/reason.js';
import type { Unit } from '../../core/record.js';
import { isThenable } from '../../core/thenable.js';
import type { GateAnswer, GateClient } from '../../experiments/gates/gate-client.js';

/** A boolean flag as the SDK evaluates it. */
interface FlagDetails {
  readonly value: boolean;
  readonly variant?: string | undefined;
  readonly errorCode?: string | undefined;
  readonly errorMessage?: string | undefined;
}

/** The methods of `OpenFeature.getClient()` that gates call; structural, so that the package is needed by its users alone. */
export interface OpenFeatureClient {
  getBooleanDetails?(
    flag: string,
    defaultValue: boolean,
    context: Readonly<Record<string, string>>,
  ): Promise<FlagDetails> | FlagDetails;
  /** Called where a client, such as a test double, has no `getBooleanDetails()`: an unknown flag is then `off` like any other. */
  getBooleanValue?(
    flag: string,
    defaultValue: boolean,
    context: Readonly<Record<string, string>>,
  ): Promise<boolean> | boolean;
  addHandler?(event: never, handler: () => void): void;
  removeHandler?(event: never, handler: () => void): void;
}

const clientOption = value<OpenFeatureClient>('an OpenFeature client: `OpenFeature.getClient()`', (given) => {
  const client = (given ?? {}) as OpenFeatureClient;
  return typeof client.getBooleanDetails === 'function' || typeof client.getBooleanValue === 'function';
});

/** Answers that are kept: the oldest one makes room. */
const MAX_ANSWERS = 10_000;
/** `check()` without a decorator uses an answer of this age at most. */
const MAX_AGE_MS = 60_000;
const CHANGED = 'PROVIDER_CONFIGURATION_CHANGED' as never;
const UNKNOWN: GateAnswer = {
  on: false,
  problem: 'OpenFeature answers with a promise: put `@Experiment()` or `@Variant()` of this gate on the handler',
};

/**
 * OpenFeature's boolean flags as gates, whatever provider the application has. The SDK evaluates asynchronously: `@Experiment()`
 * and `@Variant()` wait for it (1 s at most), and `experiments.check()` returns the unit's last answer of the past minute.
 * The unit is the `targetingKey`; custom ids are attributes of the context. The client stays yours to close.
 * @throws PERF_ERR_OPTION for what is no client
 */
export function openFeatureGates(client: OpenFeatureClient): GateClient {
  clientOption.read(client, 'openFeatureGates(client)');
  const answers = new Map<string, { readonly answer: GateAnswer; readonly atMs: number }>();
  const forget = (): void => answers.clear();
  // A changed configuration makes every kept answer an old one.
  client.addHandler?.(CHANGED, forget);

  /** Never rejects, and never throws. */
  function evaluate(gate: string, unit: Unit): Promise<void> | null {
    const keep = (answer: GateAnswer): void => {
      const key = buildKey(gate, unit);
      answers.delete(key);
      answers.set(key, { answer, atMs: performance.now() });
      if (answers.size > MAX_ANSWERS) answers.delete(answers.keys().next().value!);
    };
    const fail = (error: unknown): void => keep({ on: false, problem: describeReason(error) });
    try {
      const context = { ...unit.customIds, targetingKey: unit.userId };
      const details: unknown =
        client.getBooleanDetails === undefined
          ? client.getBooleanValue?.(gate, false, context)
          : client.getBooleanDetails(gate, false, context);
      if (isThenable(details))
        return Promise.resolve(details)
          .then((found) => keep(answerFrom(found)))
          .catch(fail);
      keep(answerFrom(details));
    } catch (error) {
      fail(error);
    }
    return null;
  }

  function kept(gate: string, unit: Unit): GateAnswer | null {
    const found = answers.get(buildKey(gate, unit));
    return found === undefined || performance.now() - found.atMs > MAX_AGE_MS ? null : found.answer;
  }

  return {
    prepare: evaluate,
    check(gate: string, unit: Unit): GateAnswer {
      const known = kept(gate, unit);
      if (known !== null) return known;
      void evaluate(gate, unit);
      // A test double may answer without a promise.
      return kept(gate, unit) ?? UNKNOWN;
    },
    async close(): Promise<void> {
      client.removeHandler?.(CHANGED, forget);
      forget();
    },
  };
}

const buildKey = (gate: string, { userId, customIds }: Unit): string => JSON.stringify([gate, userId, customIds]);

function answerFrom(found: unknown): GateAnswer {
  const {
    value: on,
    variant,
    errorCode,
    errorMessage,
  } = (typeof found === 'boolean' ? { value: found } : found) as FlagDetails;
  if (errorCode !== undefined)
    return { on: false, problem: `OpenFeature: ${errorCode}${errorMessage ? `, ${errorMessage}` : ''}` };
  return variant === undefined ? { on } : { on, rule: variant };
}
