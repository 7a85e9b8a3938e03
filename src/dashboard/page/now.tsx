import { formatDuration, formatMs, formatPercent } from '../format.js';
import { Chart } from './chart.js';
import { LastHours, RequestCharts } from './last-hours.js';
import { Section } from './parts.js';
import type { DashboardData as State } from '../view.js';

const NOTHING_MEASURED = 'Nothing is known to be wrong. Requests are not measured (`latency: false`).';

/** Problems, and how it goes. */
export function Now({ state }: { state: State }) {
  const { now } = state.sections;
  return (
    <Section id="now" title="Now">
      {now.length === 0 ? (
        <p class="fine">{state.totals === null ? NOTHING_MEASURED : 'Nothing is wrong.'}</p>
      ) : (
        <ul class="problems">
          {now.map(({ level, text, section }) => (
            <li key={text} class={level}>
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
      <LastHours past={state.sections.past} group="past" />
    </Section>
  );
}

const formatNote = (scope: State['scope'], totals: State['totals']): string =>
  totals === null ? 'not measured' : scope === 'fleet' ? 'of all pods' : `${totals.inFlight} in flight`;

function Traffic({ state: { scope, traffic, totals, sections } }: { state: State }) {
  if (traffic.length < 2)
    return (
      <p class="empty">
        {scope === 'fleet'
          ? 'Charts begin with the second minute of the history.'
          : 'Charts begin with the second answer, and go on while somebody looks.'}
      </p>
    );
  return (
    <div class="charts">
      <RequestCharts group="traffic" points={traffic} notes={[formatNote(scope, totals), 'of all routes']} />
      {sections.eventLoop !== null && (
        <>
          <Chart
            group="traffic"
            title="Event loop busy"
            points={traffic}
            lines={[{ label: 'busy', color: '--accent', column: 6, filled: true }]}
            format={formatPercent}
            atLeast={1}
            note={`${sections.eventLoop.blocks} blocks in the last seconds`}
          />
          <Chart
            group="traffic"
            title="Event loop delay, p99"
            points={traffic}
            lines={[{ label: 'delay', color: '--accent', column: 7, filled: true }]}
            format={formatDuration}
            atLeast={10}
            note={`longest ${formatMs(sections.eventLoop.delayMs.max)} ms`}
          />
        </>
      )}
    </div>
  );
}
