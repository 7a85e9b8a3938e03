import type { Figures, LatencyFigures } from './outcomes.js';
import { ms, percent } from './quantity.js';
import { UsageError } from './usage.js';

const METRICS: readonly (keyof LatencyFigures)[] = ['mean', 'p50', 'p90', 'p95', 'p99', 'p99.9', 'max'];

/** One condition: milliseconds, or the share of errors from 0 to 1. */
interface Condition {
  readonly metric: keyof LatencyFigures | 'errors';
  readonly limit: number;
  /** `<=`: the limit itself holds. */
  readonly includes: boolean;
  /** `'p95<100ms'` */
  readonly text: string;
}

/** A gate: all of its conditions must hold. */
export class Gate {
  private readonly conditions: readonly Condition[];

  /** @throws UsageError */
  constructor(text: string) {
    const parts = text
      .replaceAll(/\s*(<=?)\s*/g, '$1')
      .split(/[\s,]+/)
      .filter((part) => part !== '');
    if (parts.length === 0) throw new UsageError("--gate must hold a condition such as 'p95<100ms errors<0.1%'.");
    this.conditions = parts.map(parseCondition);
  }

  /** Latency that a user would wait for; null without a condition on latency. */
  get slowestMs(): number | null {
    const limits = this.conditions.filter(({ metric }) => metric !== 'errors').map(({ limit }) => limit);
    return limits.length === 0 ? null : Math.max(...limits);
  }

  /** Conditions that fail, with the measured value: `'p95<100ms: 318 ms'`. */
  failures({ durationMs, errorShare }: Omit<Figures, 'requests'>): string[] {
    return this.conditions.flatMap(({ metric, limit, includes, text }) => {
      const value = metric === 'errors' ? errorShare : durationMs[metric];
      if (value < limit || (includes && value === limit)) return [];
      return [`${text}: ${metric === 'errors' ? percent(value) : ms(value)}`];
    });
  }
}

function parseCondition(text: string): Condition {
  const [, metric, sign, amount, unit] = /^([\w.]+)(<=?)(\d+(?:\.\d+)?)(ms|s|%)$/.exec(text) ?? [];
  const includes = sign === '<=';
  const wrong = new UsageError(`--gate: "${text}" is no condition. They look like p95<100ms, p99<1s and errors<0.1%.`);
  if (metric === 'errors') {
    if (unit !== '%') throw wrong;
    return { metric, limit: Number(amount) / 100, includes, text };
  }
  const known = METRICS.find((name) => name === metric);
  if (known === undefined || unit === '%') throw wrong;
  return { metric: known, limit: Number(amount) * (unit === 's' ? 1_000 : 1), includes, text };
}
