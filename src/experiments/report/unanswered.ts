import type { ExperimentReport } from './experiment-report.js';

/** A report that says why there is no answer. */
export const unanswered = (
  subject: { gate: string; route: string | null; metric: string },
  reason: string,
  caveats: readonly string[] = [],
): ExperimentReport => ({
  ...subject,
  comparison: null,
  caveats: [...caveats, `${reason[0]!.toUpperCase()}${reason.slice(1)}.`],
  text: `${titleOf(subject)}: ${subject.metric} unknown: ${reason}`,
  fleet: null,
});

export const titleOf = ({ gate, route }: { gate: string; route: string | null }): string =>
  route === null ? gate : `${gate} on ${route}`;
