import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { timeOf } from './time.js';

export interface Line {
  readonly label: string;
  /** A custom property of the style: `'--accent'`. */
  readonly color: string;
  readonly values: readonly (number | null)[];
  readonly filled?: boolean;
  readonly dashed?: boolean;
}

interface ChartProps {
  readonly title: string;
  /** Epoch milliseconds. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number | null) => string;
  /** Of the vertical axis, at the least. */
  readonly atLeast: number;
  readonly note?: string | undefined;
  /** Charts of one group point at the same time. */
  readonly group: string;
  /** Where something changed: upright lines. */
  readonly marks?: readonly number[] | undefined;
}

const HEIGHT = 104;

/** A figure, how it came about, and its value at the time that is pointed at. */
export function Chart({ title, times, lines, format, atLeast, note, group, marks }: ChartProps) {
  const [index, setIndex] = useState<number | null>(null);
  const at = index ?? times.length - 1;
  const [first] = lines;
  return (
    <figure class="chart">
      <figcaption>
        <span class="name">{title}</span>
        <span class="value">{format(first?.values[at] ?? null)}</span>
        <span class="note">{index === null ? (note ?? '') : timeOf(times[index] ?? 0)}</span>
      </figcaption>
      <Plot
        times={times}
        lines={lines}
        format={format}
        atLeast={atLeast}
        group={group}
        marks={marks}
        onIndex={setIndex}
        label={told(title, lines, format)}
      />
      <p class="legend">
        {lines.map(({ label, color, values }) => (
          <span key={label}>
            <i class={`swatch ${color.slice(2)}`} />
            {label} <b>{format(values[at] ?? null)}</b>
          </span>
        ))}
      </p>
    </figure>
  );
}

/** The chart in words, for who does not see it. */
function told(title: string, lines: readonly Line[], format: ChartProps['format']): string {
  const parts = lines.map(({ label, values }) => {
    const known = values.filter((value) => value !== null);
    if (known.length === 0) return `${label} not known yet`;
    return `${label} between ${format(Math.min(...known))} and ${format(Math.max(...known))}`;
  });
  return `${title}: ${parts.join(', ')}.`;
}

interface PlotProps extends Pick<ChartProps, 'times' | 'lines' | 'format' | 'atLeast' | 'group' | 'marks'> {
  readonly onIndex: (index: number | null) => void;
  readonly label: string;
}

function Plot({ times, lines, format, atLeast, group, marks, onIndex, label }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [dark, setDark] = useState(() => matchMedia('(prefers-color-scheme: dark)').matches);
  const latest = useRef({ format, onIndex, marks });
  latest.current = { format, onIndex, marks };
  useEffect(() => {
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const change = (): void => setDark(scheme.matches);
    scheme.addEventListener('change', change);
    return () => scheme.removeEventListener('change', change);
  }, []);
  useEffect(() => {
    const element = place.current!;
    const own = new uPlot(optionsOf(element, lines, { atLeast, group }, latest), dataOf(times, lines), element);
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
  useEffect(() => plot.current?.setData(dataOf(times, lines)), [times]);
  return <div class="plot" ref={place} role="img" aria-label={label} />;
}

const dataOf = (times: readonly number[], lines: readonly Line[]): uPlot.AlignedData => [
  times.map((at) => at / 1_000),
  ...lines.map(({ values }) => [...values]),
];

function optionsOf(
  element: HTMLElement,
  lines: readonly Line[],
  { atLeast, group }: Pick<PlotProps, 'atLeast' | 'group'>,
  latest: { current: Pick<PlotProps, 'format' | 'onIndex' | 'marks'> },
): uPlot.Options {
  const style = getComputedStyle(element);
  const colorOf = (name: string): string => style.getPropertyValue(name).trim();
  const axis: uPlot.Axis = {
    stroke: colorOf('--dim'),
    font: `11px ${style.fontFamily}`,
    grid: { stroke: colorOf('--line'), width: 1 },
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
        values: (_, ticks) => ticks.map((s) => timeOf(s * 1_000)),
      },
      { ...axis, size: 52, space: 28, values: (_, ticks) => ticks.map((tick) => latest.current.format(tick)) },
    ],
    series: [
      {},
      ...lines.map(({ label, color, filled, dashed }): uPlot.Series => {
        const stroke = colorOf(color);
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
      draw: [(plot) => drawMarks(plot, latest.current.marks ?? [], colorOf('--text'))],
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
