import { attach } from './attachment.js';

/** Whether what a gate switches is faster, over all routes. */
export interface ExperimentAnswer {
  gate: string;
  /** The answer in one line. */
  text: string;
  caveats: readonly string[];
  /** Difference of the mean latency, on against off; null when nothing can be said. */
  comparison: { relativeDelta: number; ci: readonly [number, number]; pValue: number } | null;
}

/** Who can answer. Each answer takes milliseconds. */
export interface ExperimentAnswers {
  gates(): string[];
  answer(gate: string): ExperimentAnswer;
}

/** An application's; there is none with `experiments: false`. */
export const EXPERIMENT_ANSWERS = attach<ExperimentAnswers>('application');
