/** Whether what a gate switches is faster, over all routes. */
export interface ExperimentAnswer {
  gate: string;
  /** The answer in one line. */
  text: string;
  caveats: readonly string[];
  /** Difference of the mean latency, on against off; null with too little data. */
  comparison: { relativeDelta: number; ci: readonly [number, number]; pValue: number } | null;
}

/** The answers of all gates; each takes milliseconds. Not provided with `experiments: false`. */
export abstract class ExperimentAnswers {
  abstract gates(): string[];
  abstract answer(gate: string): ExperimentAnswer;
}
