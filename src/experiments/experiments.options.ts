import type { PerfRequest } from '../core/perf-request.js';
import type { Unit } from '../core/record.js';
import type { ReadUnit } from '../request/request-unit.js';
import { feature, object, optional, optionError, value, type Option, type Resolved } from '../core/option.js';
import { duration, timeout } from '../core/shared-options.js';
import { stopOption, type StopOptions } from './stop/stop-option.js';
import type { GateClient } from './gates/gate-client.js';

/** Experiments: which gates, for whom, and how a process compares itself. */
export interface ExperimentsOptions {
  /** The gate client: `staticGates({ … })`, `statsigGates(client)`, `openFeatureGates(client)`, or your own {@link GateClient}. */
  gates: GateClient;
  /**
   * The unit of a request, by which gates are randomised. Called at the first check in a request.
   * @default the module's `unit`, else the request's id
   */
  unit?(this: void, request: PerfRequest): Unit;
  /**
   * One process alternates this gate by time slices, so that CPU and memory get an answer too. `sliceMs` (60,000) is the length
   * of a slice, `washoutMs` (5,000) how much of its beginning is not counted.
   * @default none
   */
  switchback?: { gate: string; sliceMs?: number; washoutMs?: number };
  /**
   * Limits beyond which a gate is answered `off` by itself, once the anytime-valid interval lies beyond one on a route. Logged once with
   * the reason; `experiments.resume(gate)` takes it back. A switchback's gate is not stopped.
   * @default none
   */
  stop?: StopOptions;
}

const gateClient = value<GateClient>(
  'a gate client: `staticGates({ … })`, `statsigGates(client)`, `openFeatureGates(client)`, or an object with a `check()` method',
  (given) => typeof (given as Partial<GateClient> | null | undefined)?.check === 'function',
);

const slices = object({
  gate: value<string>('the name of a gate', (given) => typeof given === 'string' && given !== ''),
  sliceMs: timeout({ default: 60_000 }),
  washoutMs: duration({ default: 5_000, min: 0 }),
});
const switchback: Option<Resolved<typeof slices>> = {
  expected: slices.expected,
  read(given, path) {
    const read = slices.read(given, path);
    if (read.washoutMs >= read.sliceMs) {
      throw optionError(`${path}.washoutMs`, `shorter than \`sliceMs\` (${read.sliceMs})`, read.washoutMs);
    }
    return read;
  },
};

/** The `experiments` row of the option table. Off by default, because it needs a gate client. */
export const experimentsOption = optional(
  feature({
    gates: gateClient,
    unit: optional(value<ReadUnit>('a function', (given) => typeof given === 'function')),
    switchback: optional(switchback),
    stop: optional(stopOption),
  }),
);

export type ResolvedExperiments = NonNullable<Resolved<typeof experimentsOption>>;
