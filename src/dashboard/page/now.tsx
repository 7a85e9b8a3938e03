import { durationOf, msOf, percentOf, rateOf } from '../format.js';
import { Chart } from './chart.js';
import { Empty, Section } from './parts.js';
import type { State } from './state.js';

/** What is wrong, and how it goes. */
export function Now({ state }: { state: State }) {
  const { now } = state.sections;
  return (
    <Section id="now" title="Now">
      {now.length === 0 ? (
        <p class="fine">Nothing is wrong.</p>
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
    </Section>
  );
}

function Traffic({ state: { traffic, totals, sections } }: { state: State }) {
  if (traffic.length < 2) return <Empty>Charts begin with the second answer, and go on while somebody looks.</Empty>;
  const times = traffic.map(([at]) => at);
  const column = (index: 1 | 2 | 3 | 4 | 5 | 6 | 7): (number | null)[] => traffic.map((point) => point[index]);
  return (
    <div class="charts">
      <Chart
        title="Requests per second"
        times={times}
        lines={[
          { label: 'requests', color: '--accent', values: column(1), filled: true },
          { label: 'errors', color: '--bad', values: column(2) },
        ]}
        format={rateOf}
        atLeast={1}
        note={`${totals.inFlight} in flight`}
      />
      <Chart
        title="Response time, p95"
        times={times}
        lines={[
          { label: 'p95', color: '--accent', values: column(4) },
          { label: 'p50', color: '--accent-soft', values: column(3), filled: true },
          { label: 'p99', color: '--muted', values: column(5), dashed: true },
        ]}
        format={durationOf}
        atLeast={1}
        note="of all routes"
      />
      {sections.eventLoop !== null && (
        <>
          <Chart
            title="Event loop busy"
            times={times}
            lines={[{ label: 'busy', color: '--accent', values: column(6), filled: true }]}
            format={percentOf}
            atLeast={1}
            note={`${sections.eventLoop.blocks} blocks in the last seconds`}
          />
          <Chart
            title="Event loop delay, p99"
            times={times}
            lines={[{ label: 'delay', color: '--accent', values: column(7), filled: true }]}
            format={durationOf}
            atLeast={10}
            note={`longest ${msOf(sections.eventLoop.delayMs.max)} ms`}
          />
        </>
      )}
    </div>
  );
}
