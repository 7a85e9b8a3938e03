import { grouped, msOf } from '../format.js';
import { Cells, Empty, Section, Table, type Column } from './parts.js';
import type { State } from './state.js';

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

export function Upstreams({ state: { sections } }: { state: State }) {
  return (
    <Section id="upstreams" title="Upstreams" about="Whom the application waits for, since it started.">
      {sections.upstream.length === 0 ? (
        <Empty>No call to another server so far, or upstreams are off (`upstream: false`).</Empty>
      ) : (
        <Table caption="Upstreams" columns={COLUMNS}>
          {sections.upstream.map(({ target, calls, errors, inFlight, durationMs: { p50, p95, p99, max }, routes }) => (
            <Cells
              key={target}
              columns={COLUMNS}
              values={[
                <code>{target}</code>,
                grouped(calls),
                errors === 0 ? <span class="none">0</span> : <b class="bad">{grouped(errors)}</b>,
                inFlight === 0 ? <span class="none">0</span> : grouped(inFlight),
                msOf(p50),
                msOf(p95),
                msOf(p99),
                msOf(max),
                <small>
                  {routes
                    .slice(0, 2)
                    .map(({ route }) => route)
                    .join(', ')}
                </small>,
              ]}
            />
          ))}
        </Table>
      )}
    </Section>
  );
}
