import { grouped, msOf } from '../format.js';
import { Count, Section, Table, type Column } from './parts.js';
import type { DashboardData as State } from '../view.js';

const COLUMNS: readonly Column[] = [
  { name: 'Target', isText: true },
  { name: 'Calls' },
  { name: 'Errors' },
  { name: 'In flight', rank: 2 },
  { name: 'p50 ms', rank: 1 },
  { name: 'p95 ms' },
  { name: 'p99 ms', rank: 1 },
  { name: 'Longest ms', rank: 2 },
  { name: 'Most for', isText: true, rank: 3 },
];

export const Upstreams = ({ state: { sections } }: { state: State }) => (
  <Section
    id="upstreams"
    title="Upstreams"
    about="Whom the application waits for, since it started."
    empty={
      sections.upstream.length === 0 && 'No call to another server so far, or upstreams are off (`upstream: false`).'
    }
  >
    <Table
      caption="Upstreams"
      columns={COLUMNS}
      rows={sections.upstream.map(({ target, calls, errors, inFlight, durationMs: { p50, p95, p99, max }, routes }) => [
        <code>{target}</code>,
        grouped(calls),
        <Count count={errors} state="bad" />,
        <Count count={inFlight} />,
        ...[p50, p95, p99, max].map(msOf),
        <small>
          {routes
            .slice(0, 2)
            .map(({ route }) => route)
            .join(', ')}
        </small>,
      ])}
    />
  </Section>
);
