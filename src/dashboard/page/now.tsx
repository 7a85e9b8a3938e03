import { formatDuration, formatPercent, formatRate } from '../format.js';
import type { DashboardData as State, Past } from '../view.js';
import { Chart, Charts, formatTime, type Line } from './chart.js';
import { Section } from './parts.js';

const NOTHING_MEASURED = 'Nothing is known to be wrong. Requests are not measured (`latency: false`).';

export function Now({ state }: { state: State }) {
  const { now, past } = state.sections;
  return (
    <Section id="now" title="Now">
      {now.length === 0 ? (
        <p class="fine">✓ {state.totals === null ? NOTHING_MEASURED : 'Nothing is wrong.'}</p>
      ) : (
        <ul class="box list">
          {now.map(({ level, text, section }) => (
            <li key={text}>
              <i class={`swatch dot ${level}`} />
              <span class="unseen">{level === 'bad' ? 'Bad: ' : 'Warning: '}</span>
              {text}{' '}
              <a href={`#${section}`} aria-label={`Look: ${text}`}>
                Look
              </a>
            </li>
          ))}
        </ul>
      )}
      <Traffic state={state} />
      <LastHours past={past} />
    </Section>
  );
}

function Traffic({ state: { scope, traffic, totals, sections } }: { state: State }) {
  const isFleet = scope === 'fleet';
  const ofFleet = 'Charts begin with the second minute of the history.';
  const ofPod = 'Charts begin with the second answer, and go on while somebody looks.';
  if (traffic.length < 2) return <p class="empty">{isFleet ? ofFleet : ofPod}</p>;
  const note = totals === null ? 'not measured' : isFleet ? 'of all pods' : `${totals.inFlight} in flight`;
  const { eventLoop } = sections;
  const drawOne = (label: string, column: number): Line[] => [{ label, color: 'accent', column, filled: true }];
  const chart = { points: traffic, atLeast: 1 };
  return (
    <Charts>
      <Chart {...chart} title="Requests per second" lines={RATES} format={formatRate} note={note} />
      <Chart {...chart} title="Response time, p95" lines={TIMES} format={formatDuration} note="of all routes" />
      {eventLoop !== null && (
        <>
          <Chart
            {...chart}
            title="Event loop busy"
            lines={drawOne('busy', 6)}
            format={formatPercent}
            note={`${eventLoop.blocks} blocks in the last seconds`}
          />
          <Chart
            {...chart}
            title="Event loop delay, p99"
            lines={drawOne('delay', 7)}
            format={formatDuration}
            atLeast={10}
            note={`longest ${formatDuration(eventLoop.delayMs.max)}`}
          />
        </>
      )}
    </Charts>
  );
}

/** A history's charts, of the whole or of a route; without one there is nothing. */
export function LastHours({ past: { rows, releases } }: { past: Past }) {
  if (rows.length < 2) return null;
  const chart = { points: rows, atLeast: 1, marks: releases.map(({ at }) => at) };
  return (
    <>
      <h3>The last hours</h3>
      <Charts>
        <Chart {...chart} title="Requests per second" lines={[...RATES, showWeek(6)]} format={formatRate} />
        <Chart {...chart} title="Response time, p95" lines={[...TIMES, showWeek(7)]} format={formatDuration} />
      </Charts>
      {releases.map(({ at, release }) => (
        <p key={release} class="release">
          Release <b>{release}</b> since {formatTime(at)}
        </p>
      ))}
    </>
  );
}

const RATES: readonly Line[] = [
  { label: 'requests', color: 'accent', column: 1, filled: true },
  { label: 'errors', color: 'bad', column: 2 },
];
const TIMES: readonly Line[] = [
  { label: 'p95', color: 'accent', column: 4 },
  { label: 'p50', color: 'soft', column: 3, filled: true },
  { label: 'p99', color: 'muted', column: 5, dashed: true },
];
/** Last week at the same hours, where it is known. */
const showWeek = (column: number): Line => ({
  label: 'last week',
  color: 'warn',
  column,
  dashed: true,
  optional: true,
});
