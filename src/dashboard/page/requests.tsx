import { useMemo, useState } from 'preact/hooks';
import { counted, grouped, formatMs } from '../format.js';
import { WINDOW, type DashboardData as State, type RouteRow } from '../view.js';
import { Count, RouteName, Row, Section, Sparkline, Table } from './parts.js';
import type { Column } from '../tables.js';
import { Detail } from './route-detail.js';
import { TimeBar, TimeLegend } from './time-bar.js';

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

const OF_ALL = 'Each route in the last hour, of all pods. Choose one to see its last hours.';
const OF_ONE = 'Each route since the process started. Choose one to see its distribution, users, upstreams and blocks.';

export function Requests({ state, filter, onFilter, open, onOpen }: RequestsProps) {
  const columns = useMemo(() => makeColumns(state.overMs), [state.overMs.join()]);
  const [sort, setSort] = useState({ name: 'Time', down: true });
  const [all, setAll] = useState(false);
  const rows = useMemo(() => sortRows(findRows(state, filter), columns, sort), [state, filter, columns, sort]);
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
      <TimeLegend />
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
    ...quantiles.map(formatMs),
    <TimeBar row={row} />,
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

const makeColumns = (overMs: readonly number[]): SortColumn[] => [
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
function findRows({ routes, found }: State, filter: string): readonly RouteRow[] {
  if (filter === '') return routes;
  const wanted = filter.toLowerCase();
  return (found ?? routes).filter(({ name, handler = '' }) => `${name} ${handler}`.toLowerCase().includes(wanted));
}

function sortRows(
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
