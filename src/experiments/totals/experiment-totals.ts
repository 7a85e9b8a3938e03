/** One variant of one gate on one route. */
export interface VariantTotals {
  /** Bitmap of the units seen, deflated, base64. */
  units: string;
  /** Per bucket of units that was seen: its number, then the sums in the order of `CELLS`. */
  buckets: readonly (readonly number[])[];
}

export interface RouteTotals {
  method: string;
  route: string;
  on: VariantTotals;
  off: VariantTotals;
}

export interface GateTotals {
  gate: string;
  /** The share of units that should be on, when the gate client knows. */
  treatmentShare: number | null;
  /** The share of `on` before and after it was changed while the gate was compared; null: it was not. */
  splitMoved: readonly [from: number, to: number] | null;
  routes: readonly RouteTotals[];
}

/** One time slice of a switchback. */
export interface SliceTotals {
  gate: string;
  /** Slices of one pair carry the same name. */
  pair: string;
  on: boolean;
  /** CPU time that the process spent in the slice, milliseconds; null while the slice runs. */
  cpuMs: number | null;
  /** Resident memory of the process at the slice's end, bytes; null while the slice runs. */
  memoryBytes: number | null;
  /** Method, pattern, then the sums in the order of the first six `CELLS`. */
  routes: readonly (readonly [method: string, route: string, ...sums: number[]])[];
}

/** The observations of one process: plain JSON, so that pods can be combined with `mergeTotals()`. */
export interface ExperimentTotals {
  /** Version of this format. */
  version: 3;
  /** One random name per process; a process whose name occurs twice was counted twice. */
  sources: readonly string[];
  gates: readonly GateTotals[];
  slices: readonly SliceTotals[];
}
