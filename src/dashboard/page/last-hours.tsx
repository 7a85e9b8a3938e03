import { formatDuration, formatRate } from '../format.js';
import type { Past, PastRow, TrafficPoint } from '../view.js';
import { Chart, type Line } from './chart.js';
import { formatTime } from './time.js';

/** A history's charts, of the whole or of a route; without one there is nothing. */
export function LastHours({ past: { rows, releases }, group }: { past: Past; group: string }) {
  if (rows.length < 2) return null;
  return (
    <>
      <h3>The last hours</h3>
      <div class="charts">
        <RequestCharts group={group} points={rows} week marks={releases.map(({ at }) => at)} />
      </div>
      {releases.map(({ at, release }) => (
        <p key={release} class="release">
          Release <b>{release}</b> since {formatTime(at)}
        </p>
      ))}
    </>
  );
}

interface RequestChartsProps {
  readonly group: string;
  /** Requests and errors per second, p50, p95 and p99. */
  readonly points: readonly (TrafficPoint | PastRow)[];
  readonly notes?: readonly [string, string];
  /** The points go on with requests per second and p95 of the same hours last week. */
  readonly week?: boolean;
  readonly marks?: readonly number[];
}

export function RequestCharts({ notes, week = false, ...chart }: RequestChartsProps) {
  const lastWeek = (column: number): Line[] =>
    week ? [{ label: 'last week', color: '--warn', column, dashed: true, optional: true }] : [];
  return (
    <>
      <Chart
        {...chart}
        title="Requests per second"
        lines={[
          { label: 'requests', color: '--accent', column: 1, filled: true },
          { label: 'errors', color: '--bad', column: 2 },
          ...lastWeek(6),
        ]}
        format={formatRate}
        atLeast={1}
        note={notes?.[0]}
      />
      <Chart
        {...chart}
        title="Response time, p95"
        lines={[
          { label: 'p95', color: '--accent', column: 4 },
          { label: 'p50', color: '--accent-soft', column: 3, filled: true },
          { label: 'p99', color: '--muted', column: 5, dashed: true },
          ...lastWeek(7),
        ]}
        format={formatDuration}
        atLeast={1}
        note={notes?.[1]}
      />
    </>
  );
}
