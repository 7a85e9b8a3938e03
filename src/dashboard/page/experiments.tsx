import type { DashboardData as State } from '../view.js';
import { Section } from './parts.js';

export const Experiments = ({ state: { sections } }: { state: State }) => (
  <Section
    id="experiments"
    title="Experiments"
    about="Left of the line is faster. The bar is where the difference of the mean latency lies, with 95 % confidence."
    empty={sections.experiments.length === 0 && 'No gate has been checked so far, or experiments are off.'}
  >
    {sections.experiments.map((row) => (
      <div key={row.gate} class="box">
        <h3>
          <code>{row.gate}</code>
        </h3>
        <Interval comparison={row.comparison} />
        <p>{row.text}</p>
        <ul class="dim">
          {row.caveats.map((caveat) => (
            <li key={caveat}>{caveat}</li>
          ))}
        </ul>
      </div>
    ))}
  </Section>
);

const WIDTH = 400;

/** The interval against the zero line, on a scale with room for both. */
function Interval({ comparison }: Pick<State['sections']['experiments'][0], 'comparison'>) {
  if (comparison === null) return null;
  const { ci, relativeDelta } = comparison;
  const [low, high] = ci;
  // JSON has null for a bound without an end.
  if (!ci.every(Number.isFinite)) return null;
  const reach = Math.max(0.02, Math.abs(low), Math.abs(high)) * 1.15;
  const x = (value: number): number => (WIDTH / 2) * (1 + value / reach);
  const color = high < 0 ? 'accent' : low > 0 ? 'bad' : 'muted';
  return (
    <svg
      class={`interval ${color}`}
      viewBox={`0 0 ${WIDTH} 44`}
      role="img"
      aria-label={`${signed(relativeDelta)}, between ${signed(low)} and ${signed(high)}`}
    >
      <path class="mark" d={`M${WIDTH / 2} 2V30`} />
      <rect x={x(low)} y="10" width={Math.max(2, x(high) - x(low))} height="12" rx="3" />
      <circle cx={x(relativeDelta)} cy="16" r="4.5" />
      {ci.map((end) => (
        <text key={end} x={x(end)} y="40" text-anchor="middle">
          {signed(end)}
        </text>
      ))}
    </svg>
  );
}

const signed = (share: number): string =>
  `${share > 0 ? '+' : share < 0 ? '−' : ''}${Math.abs(share * 100).toFixed(1)} %`;
