import type { ExperimentAnswers } from '../ports/experiment-answers.js';
import type { Rejected, RejectedList } from '../ports/rejected.js';
import type { ExperimentRow } from './view.js';

const MAX_ROWS = 30;

/** Work that a store, which may be a disk, has refused for good. */
export async function readRejected(source: RejectedList | null): Promise<Rejected[]> {
  const rejected = (await source?.rejected()) ?? [];
  return rejected
    .slice(-MAX_ROWS)
    .map(({ id, name, error, rejectedAt }) => ({ id, name, error: error.slice(0, 300), rejectedAt }));
}

/** Answers of experiments. One gate a turn of the event loop: each takes milliseconds. */
export async function readExperiments(source: ExperimentAnswers | null): Promise<ExperimentRow[]> {
  const rows: ExperimentRow[] = [];
  for (const gate of source?.gates().slice(0, MAX_ROWS) ?? []) {
    const { text, caveats, comparison } = source!.answer(gate);
    const ci = comparison?.ci ?? null;
    rows.push({
      gate,
      text,
      caveats,
      relativeDelta: comparison?.relativeDelta ?? null,
      ci: ci?.every(Number.isFinite) === true ? ci : null,
    });
    await new Promise((resolve) => setImmediate(resolve));
  }
  return rows;
}
