import { useMemo, useState } from 'preact/hooks';
import { counted, formatDuration, formatMs, formatPercent, grouped } from '../format.js';
import { describeDetail, type Column, type Figure } from '../sections.js';
import type { DashboardData as State, RouteDetail, RouteRow } from '../view.js';
import { FlameGraph } from './flame-graph.js';
import { LastHours } from './now.js';
import { Bar, DataTable, Figures, RouteName, Row, Section, Table } from './parts.js';

const SHOWN = 25;

interface SortColumn extends Column {
  readonly read: (row: RouteRow) => number | string;
}

interface RequestsProps {
  readonly state: State;
  readonly open: string | null;
  readonly onOpen: (id: string | null) => void;
}

const OF_ALL = 'Each route in the last hour, of all pods. Choose one to see its last hours.';
const OF_ONE = 'Each route since the process started. Choose one to see its distribution, users, upstreams and blocks.';

/** Names and colours of a row's `time`. */
const TIME_PARTS = [
  ['own CPU', 'accent'],
  ['upstream', 'soft'],
  ['waiting for a connection', 'bad'],
  ['waiting for the event loop', 'warn'],
  ['idle', ''],
] as const;

export function Requests({ state, open, onOpen }: RequestsProps) {
  const columns = useMemo(() => makeColumns(state.overMs), [state.overMs.join()]);
  const [sort, setSort] = useState({ name: 'Time', down: true });
  const [all, setAll] = useState(false);
  const [filter, setFilter] = useState('');
  const rows = useMemo(() => sortRows(findRows(state, filter), columns, sort), [state, filter, columns, sort]);
  const others = filter === '' ? (state.totals?.routes ?? 0) - rows.length : 0;
  const sortBy = ({ name, kind }: Column): void =>
    setSort({ name, down: sort.name === name ? !sort.down : !kind.startsWith('text') });
  return (
    <Section
      id="requests"
      title="Requests"
      about={state.scope === 'fleet' ? OF_ALL : OF_ONE}
      aside={
        <input
          type="search"
          class="end"
          aria-label="Find a route"
          placeholder="Find a route"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
      }
      empty={rows.length === 0 && explainNothing(state, filter)}
    >
      <p class="legend">
        Mean of a request:
        {TIME_PARTS.map(([name, color]) => (
          <span key={name}>
            <i class={`swatch ${color}`} /> {name}
          </span>
        ))}
      </p>
      <Table caption="Routes" class="routes" columns={columns} sort={{ ...sort, by: sortBy }}>
        {(all ? rows : rows.slice(0, SHOWN)).map((row) => (
          <Route
            key={row.id}
            row={row}
            columns={columns}
            state={state}
            isOpen={row.id === open}
            onOpen={() => onOpen(row.id === open ? null : row.id)}
          />
        ))}
      </Table>
      <p class="row dim">
        {rows.length > SHOWN && (
          <button type="button" onClick={() => setAll(!all)}>
            {all ? `Show ${SHOWN}` : `Show all ${grouped(rows.length)}`}
          </button>
        )}
        {others > 0 && `${counted(others, 'more route')}: \`npx nestjs-perf explain\` finds each by its name.`}
      </p>
    </Section>
  );
}

function explainNothing({ totals }: State, filter: string): string {
  if (totals === null) return 'Requests are not measured (`latency: false`).';
  return filter === '' ? 'No request has ended yet.' : `No route has “${filter}” in its name or handler.`;
}

interface RouteProps {
  readonly row: RouteRow;
  readonly columns: readonly SortColumn[];
  readonly state: State;
  readonly isOpen: boolean;
  readonly onOpen: () => void;
}

function Route({ row, columns, state, isOpen, onOpen }: RouteProps) {
  const cells = [
    <button type="button" class="opens" aria-expanded={isOpen} onClick={onOpen}>
      <RouteName name={row.name} handler={row.handler} />
    </button>,
    grouped(row.count),
    showCount(row.errors, 'bad'),
    ...row.ms.slice(1, 4).map(formatMs),
    <TimeBar row={row} />,
    ...state.overMs.map((_, index) => showCount(row.over?.[index], 'warn')),
  ];
  return (
    <>
      <Row columns={columns} values={cells} class={isOpen ? 'open' : ''} />
      {isOpen && (
        <tr class="open detail">
          <td colSpan={columns.length}>
            <Detail row={row} state={state} />
          </td>
        </tr>
      )}
    </>
  );
}

/** A count that matters when it is not 0. */
const showCount = (count = 0, state: 'bad' | 'warn') =>
  count === 0 ? <span class="dim">0</span> : <b class={state}>{grouped(count)}</b>;

function TimeBar({ row: { ms, time } }: { row: RouteRow }) {
  if (time === undefined) return <span class="dim">–</span>;
  const whole = time.reduce<number>((sum, part) => sum + (part ?? 0), 0.001);
  const text = TIME_PARTS.map(([name], i) => `${name} ${formatDuration(time[i]!)}`).join(', ');
  return (
    <span class="split" title={`${text} of ${formatDuration(ms[0])}`}>
      <span class="unseen">{text}</span>
      <Bar parts={TIME_PARTS.map(([, color], i) => [color, (time[i] ?? 0) / whole])} />
    </span>
  );
}

const makeColumns = (overMs: readonly number[]): SortColumn[] => [
  { name: 'Route', kind: 'text', read: ({ name }) => name.slice(name.indexOf(' ') + 1) },
  { name: 'Requests', kind: 'number', read: ({ count }) => count },
  { name: '5xx', kind: 'number', read: ({ errors = 0 }) => errors },
  { name: 'p50 ms', kind: 'number rank1', read: ({ ms }) => ms[1] },
  { name: 'p95 ms', kind: 'number', read: ({ ms }) => ms[2] },
  { name: 'p99 ms', kind: 'number rank1', read: ({ ms }) => ms[3] },
  { name: 'Time', kind: 'text rank2', read: ({ count, ms }) => count * ms[0] },
  ...overMs.map((ms, index): SortColumn => ({
    name: `> ${ms / 1_000} s`,
    kind: 'number rank2',
    read: ({ over }) => over?.[index] ?? 0,
  })),
];

function findRows({ routes }: State, filter: string): readonly RouteRow[] {
  const wanted = filter.toLowerCase();
  return routes.filter(({ name, handler = '' }) => `${name} ${handler}`.toLowerCase().includes(wanted));
}

function sortRows(
  rows: readonly RouteRow[],
  columns: readonly SortColumn[],
  sort: { name: string; down: boolean },
): RouteRow[] {
  const { read } = columns.find(({ name }) => name === sort.name) ?? columns[1]!;
  const sign = sort.down ? -1 : 1;
  return rows.toSorted((a, b) => {
    const [left, right] = [read(a), read(b)];
    return sign * (typeof left === 'string' ? left.localeCompare(right as string) : left - (right as number));
  });
}

const MS = ['mean', 'p50', 'p95', 'p99', 'longest'];

function Detail({ row, state: { detail, overMs, scope, sections } }: { row: RouteRow; state: State }) {
  if (detail === null || detail.row.id !== row.id) return <p class="empty">Asking…</p>;
  const { over = [], time = [], inFlight = 0, aborted = 0, blockedMs = 0 } = row;
  const statuses = Object.entries(detail.statuses).filter(([, count]) => count > 0);
  const tables = describeDetail(detail).filter(({ rows }) => rows.length > 0);
  const blocks = sections.blocks.filter(({ route }) => route === row.name);
  return (
    <div class="route-detail">
      <Figures
        figures={[
          ...MS.map((name, i): Figure => [name, formatDuration(row.ms[i]!)]),
          ...overMs.map((ms, i): Figure => [`over ${formatDuration(ms)}`, grouped(over[i] ?? 0)]),
          ...TIME_PARTS.map(([name], i): Figure => [name, formatDuration(time[i] ?? null)]),
          ['in flight', grouped(inFlight)],
          ['aborted', grouped(aborted)],
          ['blocked the loop', formatDuration(blockedMs), blockedMs > 0 ? 'warn' : ''],
          ...statuses.map(([name, count]): Figure => [name, grouped(count), name === '5xx' ? 'bad' : '']),
        ]}
      />
      <Distribution detail={detail} count={row.count} />
      {scope === 'pod' && sections.eventLoop !== null && <FlameGraph label={row.name} />}
      <LastHours past={detail.past} />
      <div class="charts">
        {tables.map((table) => (
          <div key={table.caption}>
            <DataTable table={table} />
          </div>
        ))}
      </div>
      {blocks.map((block) => (
        <p key={block.id}>
          Blocked the event loop {counted(block.count, 'time')}, {formatDuration(block.totalMs)} in all
          {block.location !== null && (
            <>
              {' '}
              at <code>{block.location}</code>
            </>
          )}
          . <a href="#blocks">Look</a>
        </p>
      ))}
    </div>
  );
}

/** How many took how long: a bar for each half octave. */
function Distribution({ detail: { distribution }, count }: { detail: RouteDetail; count: number }) {
  if (distribution.length === 0) return null;
  const most = Math.max(...distribution.map((bucket) => bucket.count));
  const nameBucket = ({ ms, count }: (typeof distribution)[0]): string =>
    `${grouped(count)} ${ms === null ? 'longer' : `up to ${formatDuration(ms)}`}`;
  return (
    <figure class="distribution">
      <figcaption class="dim">How long requests took</figcaption>
      <div role="img" aria-label={`Distribution: ${distribution.map(nameBucket).join(', ')}`}>
        {distribution.map((bucket, index) => (
          <span key={bucket.ms} title={`${nameBucket(bucket)}, ${formatPercent(bucket.count / Math.max(1, count))}`}>
            <i
              class="accent"
              style={{ height: `${bucket.count === 0 ? 0 : Math.max(2, (bucket.count / most) * 100)}%` }}
            />
            <small>{index % 2 === 0 && bucket.ms !== null ? formatShort(bucket.ms) : ''}</small>
          </span>
        ))}
      </div>
    </figure>
  );
}

const formatShort = (ms: number): string =>
  ms >= 1_000 ? `${Number((ms / 1_000).toPrecision(2))} s` : `${Number(ms.toPrecision(2))}`;
