/** Whether what a gate switches is faster, over all routes. */
export interface ExperimentAnswer {
  gate: string;
  /** The answer in one line. */
  text: string;
  caveats: readonly string[];
}

/** The answers of all gates; each takes milliseconds. Not provided with `experiments: false`. */
export abstract class ExperimentAnswers {
  abstract gates(): string[];
  abstract answer(gate: string): ExperimentAnswer;
}
