import { durationOf, rateOf } from '../format.js';
import type { Past } from '../view.js';
import { Chart, type Line } from './chart.js';
import { timeOf } from './time.js';

/** What a history tells, of the whole or of a route; without one there is nothing. */
export function LastHours({ past: { rows, releases }, group }: { past: Past; group: string }) {
  if (rows.length < 2) return null;
  const column = (index: 1 | 2 | 3 | 4 | 5 | 6 | 7): (number | null)[] => rows.map((row) => row[index]);
  return (
    <>
      <h3>The last hours</h3>
      <div class="charts">
        <RequestCharts
          group={group}
          times={rows.map(([at]) => at)}
          column={column}
          week={[column(6), column(7)]}
          marks={releases.map(({ at }) => at)}
        />
      </div>
      {releases.map(({ at, release }) => (
        <p key={release} class="release">
          Release <b>{release}</b> since {timeOf(at)}
        </p>
      ))}
    </>
  );
}

interface RequestChartsProps {
  readonly group: string;
  readonly times: readonly number[];
  /** Requests and errors per second; p50, p95 and p99 in milliseconds. */
  readonly column: (index: 1 | 2 | 3 | 4 | 5) => (number | null)[];
  readonly notes?: readonly [string, string];
  /** Requests per second and p95 of the same hours last week. */
  readonly week?: readonly [(number | null)[], (number | null)[]];
  readonly marks?: readonly number[];
}

export function RequestCharts({ group, times, column, notes, week, marks }: RequestChartsProps) {
  const lastWeek = (values: (number | null)[] | undefined): Line[] =>
    values?.some((value) => value !== null) === true
      ? [{ label: 'last week', color: '--warn', values, dashed: true }]
      : [];
  return (
    <>
      <Chart
        group={group}
        title="Requests per second"
        times={times}
        marks={marks}
        lines={[
          { label: 'requests', color: '--accent', values: column(1), filled: true },
          { label: 'errors', color: '--bad', values: column(2) },
          ...lastWeek(week?.[0]),
        ]}
        format={rateOf}
        atLeast={1}
        note={notes?.[0]}
      />
      <Chart
        group={group}
        title="Response time, p95"
        times={times}
        marks={marks}
        lines={[
          { label: 'p95', color: '--accent', values: column(4) },
          { label: 'p50', color: '--accent-soft', values: column(3), filled: true },
          { label: 'p99', color: '--muted', values: column(5), dashed: true },
          ...lastWeek(week?.[1]),
        ]}
        format={durationOf}
        atLeast={1}
        note={notes?.[1]}
      />
    </>
  );
}
