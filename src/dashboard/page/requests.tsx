import { useMemo, useState } from 'preact/hooks';
import { counted, durationOf, grouped, idleOf, msOf, ownOf } from '../format.js';
import { WINDOW, type DashboardData as State, type RouteRow } from '../view.js';
import { Count, ownText, RouteName, Row, Section, Sparkline, Table, waitName, type Column } from './parts.js';
import { Detail } from './route-detail.js';

const SHOWN = 25;

interface SortColumn extends Column {
  readonly of: (row: RouteRow) => number | string;
}

interface RequestsProps {
  readonly state: State;
  readonly filter: string;
  readonly onFilter: (filter: string) => void;
  readonly open: string | null;
  readonly onOpen: (id: string | null) => void;
}

const LEGEND = [
  ['accent', 'own CPU'],
  ['accent-soft', 'upstream'],
  ['warn', 'waiting for the event loop'],
  ['', 'idle'],
] as const;
const OF_ALL = 'Each route in the last hour, of all pods. Choose one to see its last hours.';
const OF_ONE = 'Each route since the process started. Choose one to see its distribution, users, upstreams and blocks.';
const NOT_TOLD_APART = ['muted', 'one of the two, not told apart yet'] as const;

export function Requests({ state, filter, onFilter, open, onOpen }: RequestsProps) {
  const columns = useMemo(() => columnsOf(state.overMs), [state.overMs.join()]);
  const [sort, setSort] = useState({ name: 'Time', down: true });
  const [all, setAll] = useState(false);
  const rows = useMemo(() => sorted(matching(state, filter), columns, sort), [state, filter, columns, sort]);
  const others = filter === '' ? state.other : null;
  const sortBy = ({ name, isText }: Column): void =>
    setSort({ name, down: sort.name === name ? !sort.down : isText !== true });
  return (
    <Section
      id="requests"
      title="Requests"
      about={state.scope === 'fleet' ? OF_ALL : OF_ONE}
      aside={
        <label class="filter">
          <span class="unseen">Find a route</span>
          <input
            type="search"
            placeholder="Find a route"
            value={filter}
            onInput={(event) => onFilter(event.currentTarget.value)}
          />
        </label>
      }
      empty={rows.length === 0 && nothingIn(state, filter)}
    >
      <p class="legend">
        Mean of a request:
        {[...LEGEND, ...(rows.some(({ time }) => time?.[0] === null) ? [NOT_TOLD_APART] : [])].map(([color, name]) => (
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
      <p class="more">
        {rows.length > SHOWN && (
          <button type="button" onClick={() => setAll(!all)}>
            {all ? `Show ${SHOWN}` : `Show all ${grouped(rows.length)}`}
          </button>
        )}
        {others !== null && (
          <span>
            {counted(others.routes, 'more route')} with {counted(others.count, 'request')},{' '}
            {counted(others.errors, 'error')}: find them by name.
          </span>
        )}
      </p>
    </Section>
  );
}

function nothingIn({ totals }: State, filter: string): string {
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
  const [, ...quantiles] = row.ms.slice(0, 4);
  const cells = [
    <button type="button" class="opens" aria-expanded={isOpen} onClick={onOpen}>
      <RouteName name={row.name} handler={row.handler} />
    </button>,
    grouped(row.count),
    <Count count={row.errors ?? 0} state="bad" />,
    ...quantiles.map(msOf),
    <Split row={row} />,
    ...state.overMs.map((_, index) => <Count count={row.over?.[index] ?? 0} state="warn" />),
    <Sparkline values={row.recent} count={WINDOW} />,
  ];
  return (
    <>
      <Row columns={columns} values={cells} class={isOpen ? 'open' : ''} />
      {isOpen && (
        <tr class="detail">
          <td colSpan={columns.length}>
            <Detail row={row} state={state} />
          </td>
        </tr>
      )}
    </>
  );
}

/** Parts of the mean; what is left is idle. */
function Split({ row }: { row: RouteRow }) {
  const { ms, time } = row;
  if (time === undefined) return <span class="none">–</span>;
  const [, upstream, wait] = time;
  const { ms: own, isWhole } = ownOf(row);
  const mean = Math.max(ms[0], (own ?? 0) + upstream + wait, 0.001);
  const part = (value: number): { width: string } => ({ width: `${(value / mean) * 100}%` });
  const text = `${own === null ? '' : `own ${ownText(row)}, `}upstream ${durationOf(upstream)}, ${waitName(row)} ${durationOf(wait)}, idle ${durationOf(idleOf(row))} of ${durationOf(ms[0])}`;
  return (
    <span class="split" title={text}>
      <span class="unseen">{text}</span>
      <i class="accent" style={part(own ?? 0)} />
      <i class="accent-soft" style={part(upstream)} />
      <i class={isWhole ? 'warn' : 'muted'} style={part(wait)} />
    </span>
  );
}

const columnsOf = (overMs: readonly number[]): SortColumn[] => [
  { name: 'Route', isText: true, of: ({ name }) => name.slice(name.indexOf(' ') + 1) },
  { name: 'Requests', of: ({ count }) => count },
  { name: '5xx', of: ({ errors = 0 }) => errors },
  { name: 'p50 ms', rank: 1, of: ({ ms }) => ms[1] },
  { name: 'p95 ms', of: ({ ms }) => ms[2] },
  { name: 'p99 ms', rank: 1, of: ({ ms }) => ms[3] },
  { name: 'Time', isText: true, rank: 2, of: ({ count, ms }) => count * ms[0] },
  ...overMs.map((ms, index): SortColumn => ({
    name: `> ${ms / 1_000} s`,
    rank: 2,
    of: ({ over }) => over?.[index] ?? 0,
  })),
  { name: 'Lately', isText: true, rank: 3, of: ({ recent = [] }) => recent.reduce((sum, count) => sum + count, 0) },
];

/** The server finds among all routes; until it has answered, the page among its own. */
function matching({ routes, found }: State, filter: string): readonly RouteRow[] {
  if (filter === '') return routes;
  const wanted = filter.toLowerCase();
  return (found ?? routes).filter(({ name, handler = '' }) => `${name} ${handler}`.toLowerCase().includes(wanted));
}

function sorted(
  rows: readonly RouteRow[],
  columns: readonly SortColumn[],
  sort: { name: string; down: boolean },
): RouteRow[] {
  const { of } = columns.find(({ name }) => name === sort.name) ?? columns[1]!;
  const sign = sort.down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [left, right] = [of(a), of(b)];
    return sign * (typeof left === 'string' ? left.localeCompare(right as string) : left - (right as number));
  });
}
