import { createContext, type ComponentChildren } from 'preact';
import { useContext, useState } from 'preact/hooks';

const two = (value: number): string => String(value).padStart(2, '0');

/** `14:02:11`, where the viewer is. */
export function formatTime(at: number): string {
  const date = new Date(at);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export interface Line {
  readonly label: string;
  /** A class with the colour. */
  readonly color: 'accent' | 'soft' | 'bad' | 'warn' | 'muted';
  /** Its place in a point. */
  readonly column: number;
  readonly filled?: boolean;
  readonly dashed?: boolean;
  /** Left out while nothing is known of it. */
  readonly optional?: boolean;
}

interface ChartProps {
  readonly title: string;
  /** The time, epoch milliseconds, and a value a column. */
  readonly points: readonly (readonly (number | null)[])[];
  readonly lines: readonly Line[];
  readonly format: (value: number | null) => string;
  /** The vertical axis reaches so far at least. */
  readonly atLeast: number;
  readonly note?: string | undefined;
  /** Times when something changed: upright lines. */
  readonly marks?: readonly number[];
}

/** The place that is pointed at, from 0 to 1; null: none. */
type Pointing = readonly [share: number | null, point: (share: number | null) => void];
const Pointed = createContext<Pointing>([null, () => {}]);

/** Charts of the same points: all of them show the values at the time that is pointed at. */
export function Charts({ children }: { children: ComponentChildren }) {
  const pointing = useState<number | null>(null);
  return (
    <div class="charts" onPointerLeave={() => pointing[1](null)}>
      <Pointed.Provider value={pointing}>{children}</Pointed.Provider>
    </div>
  );
}

const [WIDTH, HEIGHT] = [300, 84];

/** A figure, how it came about, and its value at the time that is pointed at. */
export function Chart({ title, points, format, atLeast, note = '', marks = [], ...chart }: ChartProps) {
  const [share, point] = useContext(Pointed);
  const lines = chart.lines.filter(
    ({ column, optional }) => optional !== true || points.some((values) => values[column] != null),
  );
  const [start, end] = [points[0]![0]!, points.at(-1)![0]!];
  const shownAt = share === null ? end : start + share * (end - start);
  const shown = points.reduce((best, one) => (Math.abs(one[0]! - shownAt) < Math.abs(best[0]! - shownAt) ? one : best));
  const known = lines.flatMap(({ column }) => points.map((values) => values[column] ?? 0));
  const top = Math.max(atLeast, roundUp(Math.max(...known)));
  const x = (at: number): number => Math.round(((at - start) / Math.max(1, end - start)) * WIDTH * 10) / 10;
  const y = (value: number): number => Math.round((1 - value / top) * HEIGHT * 10) / 10;
  const formatShown = ({ column }: Line): string => format(shown[column] ?? null);
  const showAt = ({ clientX, currentTarget }: PointerEvent): void => {
    const { left, width } = (currentTarget as Element).getBoundingClientRect();
    point((clientX - left) / width);
  };
  return (
    <figure class="chart box">
      <figcaption class="dim">
        {title}
        <b>{formatShown(lines[0]!)}</b>
        <small>{share === null ? note : formatTime(shown[0]!)}</small>
      </figcaption>
      <div class="plot">
        <small>
          {[top, top / 2, 0].map((value) => (
            <span key={value}>{format(value)}</span>
          ))}
        </small>
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`Chart of ${title}`}
          onPointerMove={showAt}
        >
          <path class="grid" d={`M0 0H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT}H${WIDTH}`} />
          {lines.map(({ label, color, column, filled, dashed }) => {
            const runs = findRuns(points, column).map((run) => run.map(([at, value]) => [x(at), y(value)] as const));
            const area = runs.map((run) => `M${run[0]![0]} ${HEIGHT}L${run.join('L')}V${HEIGHT}Z`).join('');
            return (
              <g key={label} class={color}>
                {filled === true && <path class="area" d={area} />}
                <path class={dashed === true ? 'dashed' : ''} d={runs.map((run) => `M${run.join('L')}h0`).join('')} />
              </g>
            );
          })}
          {marks.map((at) => at >= start && at <= end && <path key={at} class="mark" d={`M${x(at)} 0V${HEIGHT}`} />)}
          {share !== null && <path class="grid" d={`M${x(shown[0]!)} 0V${HEIGHT}`} />}
        </svg>
        <small class="times">
          {[start, (start + end) / 2, end].map((at) => (
            <span key={at}>{formatTime(at)}</span>
          ))}
        </small>
      </div>
      <p class="legend">
        {lines.map((line) => (
          <span key={line.label}>
            <i class={`swatch ${line.color}`} />
            {line.label} <b>{formatShown(line)}</b>
          </span>
        ))}
      </p>
    </figure>
  );
}

/** The next number whose half is short as well: 4, 5, 6, 8, 10, 12. */
function roundUp(value: number): number {
  const unit = 2 ** Math.floor(Math.log2(Math.max(value, 1e-9)));
  return unit * [1, 1.25, 1.5, 2].find((times) => unit * times >= value)!;
}

function findRuns(points: ChartProps['points'], column: number): [at: number, value: number][][] {
  const runs: [number, number][][] = [[]];
  for (const values of points) {
    const value = values[column] ?? null;
    if (value === null) runs.push([]);
    else runs.at(-1)!.push([values[0]!, value]);
  }
  return runs.filter(({ length }) => length > 0);
}
