import { counted, formatDuration, grouped, findIdleMs, formatPercent } from '../format.js';
import type { DashboardData as State, RouteDetail, RouteRow } from '../view.js';
import { FlameGraph } from './flame-graph.js';
import { LastHours } from './last-hours.js';
import { Figures, Table, type Figure } from './parts.js';
import type { Column } from '../tables.js';
import { TIME_PARTS } from './time-bar.js';

const UPSTREAM: readonly Column[] = [
  { name: 'Upstream', isText: true },
  { name: 'Calls a request' },
  { name: 'Time a request' },
];
const USERS: readonly Column[] = [{ name: 'User', isText: true }, { name: 'Requests' }, { name: 'Total time' }];

/** Names of a row's `ms`. */
const MS = ['mean', 'p50', 'p95', 'p99', 'longest'];

/** One route in depth. */
export function Detail({ row, state }: { row: RouteRow; state: State }) {
  const { detail } = state;
  if (detail === null || detail.id !== row.id) return <p class="empty">Asking…</p>;
  const time = row.time ?? [null, null, null, null];
  const blocks = state.sections.blocks.filter(({ id }) => detail.blocks.includes(id));
  const statuses = Object.entries(detail.statuses).filter(([, count]) => count > 0);
  return (
    <div class="route-detail">
      <Figures
        figures={[
          ...MS.map((name, i): Figure => [name, formatDuration(row.ms[i]!)]),
          ...state.overMs.map((ms, i): Figure => [`over ${formatDuration(ms)}`, grouped(row.over?.[i] ?? 0)]),
          ...TIME_PARTS.map(({ name }, i): Figure => [name, formatDuration(time[i]!)]),
          ['idle', formatDuration(findIdleMs(row))],
          ['in flight', grouped(row.inFlight ?? 0)],
          ['aborted', grouped(row.aborted ?? 0)],
          ['blocked the loop', formatDuration(row.blockedMs ?? 0), (row.blockedMs ?? 0) > 0 ? 'warn' : ''],
          ...statuses.map(([name, count]): Figure => [name, grouped(count), name === '5xx' ? 'bad' : '']),
        ]}
      />
      <Distribution detail={detail} count={row.count} />
      {state.scope === 'pod' && state.sections.eventLoop !== null && <FlameGraph label={row.name} />}
      <LastHours past={detail.past} group="route-past" />
      <div class="columns">
        {detail.upstream.length > 0 && (
          <Table
            caption="Upstreams of this route"
            columns={UPSTREAM}
            rows={detail.upstream.map(({ target, callsPerRequest, wallMs }) => [
              <code>{target}</code>,
              callsPerRequest.toFixed(callsPerRequest < 10 ? 1 : 0),
              formatDuration(wallMs),
            ])}
          />
        )}
        {detail.users.length > 0 && (
          <Table
            caption="Users of this route in the last hour"
            columns={USERS}
            rows={detail.users.map(({ unit, count, totalMs }) => [
              <code>{unit}</code>,
              grouped(count),
              formatDuration(totalMs),
            ])}
          />
        )}
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
  const told = distribution.map((bucket) => `${grouped(bucket.count)} ${formatBound(bucket.ms)}`).join(', ');
  return (
    <figure class="distribution">
      <figcaption>How long requests took</figcaption>
      <div role="img" aria-label={`Distribution: ${told}`}>
        {distribution.map((bucket, index) => (
          <span
            key={bucket.ms}
            title={`${grouped(bucket.count)} ${formatBound(bucket.ms)}, ${formatPercent(bucket.count / Math.max(1, count))}`}
          >
            <i style={{ height: `${bucket.count === 0 ? 0 : Math.max(2, (bucket.count / most) * 100)}%` }} />
            <small>{index % 2 === 0 && bucket.ms !== null ? formatShort(bucket.ms) : ''}</small>
          </span>
        ))}
      </div>
    </figure>
  );
}

const formatBound = (ms: number | null): string => (ms === null ? 'longer' : `up to ${formatDuration(ms)}`);
const formatShort = (ms: number): string =>
  ms >= 1_000 ? `${Number((ms / 1_000).toPrecision(2))} s` : `${Number(ms.toPrecision(2))}`;
