import type { ExperimentRow } from '../view.js';
import { Section } from './parts.js';
import type { DashboardData as State } from '../view.js';

export const Experiments = ({ state: { sections } }: { state: State }) => (
  <Section
    id="experiments"
    title="Experiments"
    about="Left of the line is faster. The bar is where the difference of the mean latency lies, with 95 % confidence."
    empty={sections.experiments.length === 0 && 'No gate has been checked so far, or experiments are off.'}
  >
    <ul class="experiments">
      {sections.experiments.map((row) => (
        <li key={row.gate}>
          <h3>
            <code>{row.gate}</code>
          </h3>
          <Interval row={row} />
          <p>{row.text}</p>
          {row.caveats.length > 0 && (
            <ul>
              {row.caveats.map((caveat) => (
                <li key={caveat}>{caveat}</li>
              ))}
            </ul>
          )}
        </li>
      ))}
    </ul>
  </Section>
);

const WIDTH = 400;

/** The interval against the zero line, on a scale with room for both. */
function Interval({ row: { ci, relativeDelta } }: { row: ExperimentRow }) {
  if (ci === null || relativeDelta === null) return null;
  const [low, high] = ci;
  const reach = Math.max(0.02, Math.abs(low), Math.abs(high)) * 1.15;
  const x = (value: number): number => (WIDTH / 2) * (1 + value / reach);
  const state = high < 0 ? 'better' : low > 0 ? 'worse' : 'open';
  return (
    <svg
      class={`interval ${state}`}
      viewBox={`0 0 ${WIDTH} 44`}
      role="img"
      aria-label={`${signed(relativeDelta)}, between ${signed(low)} and ${signed(high)}`}
    >
      <path class="zero" d={`M${WIDTH / 2} 2V30`} />
      <rect x={x(low)} y="10" width={Math.max(2, x(high) - x(low))} height="12" rx="3" />
      <circle cx={x(relativeDelta)} cy="16" r="4.5" />
      <text x={x(low)} y="40" text-anchor="middle">
        {signed(low)}
      </text>
      <text x={x(high)} y="40" text-anchor="middle">
        {signed(high)}
      </text>
    </svg>
  );
}

const signed = (share: number): string =>
  `${share > 0 ? '+' : share < 0 ? '−' : ''}${Math.abs(share * 100).toFixed(1)} %`;
