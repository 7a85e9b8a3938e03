import { formatColumns, listErrors, describeOutcome, type Judgement } from '../judgement.js';
import { ms, percent, perSecond } from '../quantity.js';
import { EXIT } from '../usage.js';

/** One step and the rest after it. */
export interface StepResult extends Judgement {
  /** 2 for 2X. */
  readonly factor: number;
  readonly ratePerSecond: number;
  /** From the end of the step; null: not within the rest. Undefined without a rest. */
  readonly recoveredAfterMs?: number | null | undefined;
  /** Ratio of the resident memory after the rest to that before the first step; null where it is not known. */
  readonly memoryRatio: number | null;
}

export interface RampResult {
  readonly steps: readonly StepResult[];
  /** Why the last step did not hold, as the server tells. */
  readonly reasons: readonly string[];
  /** Why the server tells nothing; null when it does. */
  readonly obstacle: string | null;
}

/** 0 holds, 1 fails its gate, 2 does not recover, 3 void. */
export function chooseExitCode({ steps }: RampResult): number {
  const { outcome, recoveredAfterMs } = steps.at(-1)!;
  return outcome !== 'void' && recoveredAfterMs === null ? EXIT.noRecovery : EXIT[outcome];
}

const formatFactor = ({ factor }: StepResult): string => `${Number(factor.toFixed(2))}X`;

/** One line of a step. */
export function stepLine(step: StepResult): string {
  const said = step.outcome === 'fails' ? 'fails' : describeOutcome(step);
  return `${formatFactor(step).padEnd(5)} ${perSecond(step.ratePerSecond).padStart(8)}  ${formatColumns(step)}  ${said}`;
}

/** The answer, in a few lines. */
export function* verdictLines({ steps, reasons, obstacle }: RampResult): Generator<string> {
  const last = steps.at(-1)!;
  const held = steps.findLast(({ outcome, recoveredAfterMs }) => outcome === 'holds' && recoveredAfterMs !== null);
  const holds =
    held === undefined
      ? 'holds nothing.'
      : `holds ${formatFactor(held)} (${perSecond(held.ratePerSecond)}): p95 ${ms(held.durationMs.p95)}.`;
  const name = `${formatFactor(last)} (${perSecond(last.ratePerSecond)})`;
  if (last.outcome === 'void') yield `ramp: ${holds} ${name} is void: ${last.because.join(', ')}.`;
  else if (last.outcome === 'fails') yield `ramp: ${holds} ${name} fails ${last.because.join(', ')}.`;
  else yield `ramp: ${holds}`;
  if (last.recoveredAfterMs === null) yield `It does not recover within the rest after ${formatFactor(last)}.`;
  if (last.outcome === 'fails') {
    const why = [...reasons, listErrors(last)].filter((reason) => reason !== null).join('; ');
    const unknown = obstacle === null ? "nothing in the server's own figures" : `not known: ${obstacle}`;
    yield `why: ${why === '' ? unknown : why}.`;
  }
  const known: string[] = [];
  if (typeof last.recoveredAfterMs === 'number')
    known.push(`recovery: ${ms(last.recoveredAfterMs)} after ${formatFactor(last)}`);
  if (last.memoryRatio !== null)
    known.push(`memory ${last.memoryRatio < 1 ? 'below' : `within ${percent(last.memoryRatio - 1)} of`} what it was`);
  if (known.length > 0) yield `${known.join('. ')}.`;
}
