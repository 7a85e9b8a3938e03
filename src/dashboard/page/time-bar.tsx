import { formatDuration, findIdleMs } from '../format.js';
import type { RouteRow } from '../view.js';

/** Names and colours of a row's `time`; what is left of the mean is idle. */
export const TIME_PARTS = [
  { name: 'own CPU', color: 'accent' },
  { name: 'upstream', color: 'accent-soft' },
  { name: 'waiting for a connection', color: 'bad' },
  { name: 'waiting for the event loop', color: 'warn' },
] as const;

export const TimeLegend = () => (
  <p class="legend">
    Mean of a request:
    {[...TIME_PARTS, { name: 'idle', color: '' }].map(({ name, color }) => (
      <span key={name}>
        <i class={`swatch ${color}`} /> {name}
      </span>
    ))}
  </p>
);

/** The parts of a mean request. */
export function TimeBar({ row }: { row: RouteRow }) {
  const { ms, time } = row;
  if (time === undefined) return <span class="none">–</span>;
  const mean = Math.max(
    time.reduce<number>((sum, part) => sum + (part ?? 0), 0),
    ms[0],
    0.001,
  );
  const parts = TIME_PARTS.map(({ name }, i) => `${name} ${formatDuration(time[i]!)}`);
  const text = `${parts.join(', ')}, idle ${formatDuration(findIdleMs(row))} of ${formatDuration(ms[0])}`;
  return (
    <span class="split" title={text}>
      <span class="unseen">{text}</span>
      {TIME_PARTS.map(({ color }, i) => (
        <i key={color} class={color} style={{ width: `${((time[i] ?? 0) / mean) * 100}%` }} />
      ))}
    </span>
  );
}
