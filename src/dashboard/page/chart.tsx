import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { formatTime } from './time.js';

export interface Line {
  readonly label: string;
  /** A custom property of the style: `'--accent'`. */
  readonly color: string;
  /** Its place in a point. */
  readonly column: number;
  readonly filled?: boolean;
  readonly dashed?: boolean;
  /** Left out while nothing is known of it. */
  readonly optional?: boolean;
}

/** The time, epoch milliseconds, and a value a column. */
export type Point = readonly (number | null)[];

interface ChartProps {
  readonly title: string;
  readonly points: readonly Point[];
  readonly lines: readonly Line[];
  readonly format: (value: number | null) => string;
  /** The vertical axis reaches so far at least. */
  readonly atLeast: number;
  readonly note?: string | undefined;
  /** Charts of one group point at the same time. */
  readonly group: string;
  /** Times when something changed: upright lines. */
  readonly marks?: readonly number[] | undefined;
}

const HEIGHT = 104;

/** A figure, how it came about, and its value at the time that is pointed at. */
export function Chart({ title, note, ...chart }: ChartProps) {
  const [index, setIndex] = useState<number | null>(null);
  const { points, format } = chart;
  const lines = chart.lines.filter(
    ({ column, optional }) => optional !== true || points.some((point) => point[column] != null),
  );
  const at = points[index ?? points.length - 1] ?? [];
  const formatAt = ({ column }: Line): string => format(at[column] ?? null);
  return (
    <figure class="chart">
      <figcaption>
        <span class="name">{title}</span>
        <span class="value">{formatAt(lines[0]!)}</span>
        <span class="note">{index === null ? (note ?? '') : formatTime(at[0] ?? 0)}</span>
      </figcaption>
      <Plot {...chart} lines={lines} onIndex={setIndex} label={describeChart(title, points, lines, format)} />
      <p class="legend">
        {lines.map((line) => (
          <span key={line.label}>
            <i class={`swatch ${line.color.slice(2)}`} />
            {line.label} <b>{formatAt(line)}</b>
          </span>
        ))}
      </p>
    </figure>
  );
}

const readColumn = (points: readonly Point[], column: number): (number | null)[] =>
  points.map((point) => point[column] ?? null);

/** The chart in words, for who does not see it. */
function describeChart(
  title: string,
  points: readonly Point[],
  lines: readonly Line[],
  format: ChartProps['format'],
): string {
  const parts = lines.map(({ label, column }) => {
    const known = readColumn(points, column).filter((value) => value !== null);
    if (known.length === 0) return `${label} not known yet`;
    return `${label} between ${format(Math.min(...known))} and ${format(Math.max(...known))}`;
  });
  return `${title}: ${parts.join(', ')}.`;
}

interface PlotProps extends Omit<ChartProps, 'title' | 'note'> {
  readonly onIndex: (index: number | null) => void;
  readonly label: string;
}

function Plot(props: PlotProps) {
  const { points, lines, label } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [dark, setDark] = useState(() => matchMedia('(prefers-color-scheme: dark)').matches);
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const change = (): void => setDark(scheme.matches);
    scheme.addEventListener('change', change);
    return () => scheme.removeEventListener('change', change);
  }, []);
  useEffect(() => {
    const element = place.current!;
    const own = new uPlot(makeOptions(element, latest), alignData(points, lines), element);
    plot.current = own;
    const resized = new ResizeObserver(() => own.setSize({ width: element.clientWidth, height: HEIGHT }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      own.destroy();
      plot.current = null;
    };
    // Colours are painted: another scheme needs another chart.
  }, [dark, lines.length]);
  useEffect(() => plot.current?.setData(alignData(points, lines)), [points]);
  return <div class="plot" ref={place} role="img" aria-label={label} />;
}

const alignData = (points: readonly Point[], lines: readonly Line[]): uPlot.AlignedData => [
  points.map(([at]) => at! / 1_000),
  ...lines.map(({ column }) => readColumn(points, column)),
];

function makeOptions(element: HTMLElement, latest: { readonly current: PlotProps }): uPlot.Options {
  const { atLeast, group, lines } = latest.current;
  const style = getComputedStyle(element);
  const readColor = (name: string): string => style.getPropertyValue(name).trim();
  const axis: uPlot.Axis = {
    stroke: readColor('--dim'),
    font: `11px ${style.fontFamily}`,
    grid: { stroke: readColor('--line'), width: 1 },
    ticks: { show: false },
  };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    padding: [6, 16, 0, 0],
    cursor: { sync: { key: group }, drag: { x: false, y: false }, points: { size: 5 }, y: false },
    scales: { y: { range: (_, __, max) => [0, Math.max(atLeast, (max ?? 0) * 1.1)] } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 22,
        space: 70,
        values: (_, ticks) => ticks.map((s) => formatTime(s * 1_000)),
      },
      { ...axis, size: 52, space: 28, values: (_, ticks) => ticks.map((tick) => latest.current.format(tick)) },
    ],
    series: [
      {},
      ...lines.map(({ label, color, filled, dashed }): uPlot.Series => {
        const stroke = readColor(color);
        return {
          label,
          stroke,
          width: 1.5,
          points: { show: false },
          ...(filled === true && { fill: `color-mix(in srgb, ${stroke} 14%, transparent)` }),
          ...(dashed === true && { dash: [4, 4] }),
        };
      }),
    ],
    hooks: {
      draw: [(plot) => drawMarks(plot, latest.current.marks ?? [], readColor('--text'))],
      setCursor: [({ cursor }) => latest.current.onIndex(cursor.idx ?? null)],
    },
  };
}

function drawMarks(plot: uPlot, marks: readonly number[], color: string): void {
  const { ctx, bbox } = plot;
  const { min = null, max = null } = plot.scales['x'] ?? {};
  for (const at of marks.map((ms) => ms / 1_000)) {
    if (min === null || max === null || at < min || at > max) continue;
    ctx.fillStyle = color;
    ctx.fillRect(Math.round(plot.valToPos(at, 'x', true)), bbox.top, devicePixelRatio, bbox.height);
  }
}
