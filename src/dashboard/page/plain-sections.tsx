import { counted, formatBytes, formatPercent, grouped } from '../format.js';
import {
  compressionTable,
  failedTable,
  formatSaved,
  podsTable,
  rejectedTable,
  upstreamsTable,
  usersTable,
} from '../tables.js';
import type { DashboardData as State } from '../view.js';
import { DataTable } from './data-table.js';
import { Figures, Section, type Figure } from './parts.js';

const SHOWN_PODS = 200;
const SHOWN_FAILED = 10;

/** The last minute of each pod; the odd one is marked. */
export function Pods({ state: { pods, at } }: { state: State }) {
  if (pods === null) return null;
  return (
    <Section
      id="pods"
      title="Pods"
      about="The last minute of each. Marked is what is at least twice the median of the others."
      empty={pods.length === 0 && 'No pod has written yet: each does once a minute.'}
    >
      <DataTable table={podsTable(pods.slice(0, SHOWN_PODS), at)} />
      {pods.length > SHOWN_PODS && <p class="more">{counted(pods.length - SHOWN_PODS, 'more pod')}</p>}
    </Section>
  );
}

export const Upstreams = ({ state: { sections } }: { state: State }) => (
  <Section
    id="upstreams"
    title="Upstreams"
    about="Whom the application waits for, since it started."
    empty={
      sections.upstream.length === 0 && 'No call to another server so far, or upstreams are off (`upstream: false`).'
    }
  >
    <DataTable table={upstreamsTable(sections.upstream)} />
  </Section>
);

const NO_USER =
  'No request came from a known user. A user is `request.user.id`, unless the option `unit` tells whom a request is for.';

export const Users = ({ state: { sections } }: { state: State }) => (
  <Section
    id="users"
    title="Users"
    about="Who took most of the application's time in the last hour."
    empty={sections.users.length === 0 && NO_USER}
  >
    <DataTable table={usersTable(sections.users)} />
  </Section>
);

export function Compression({ state: { sections } }: { state: State }) {
  const { compression: stats } = sections;
  return (
    <Section
      id="compression"
      title="Compression and shared answers"
      about="Bytes that did not have to travel."
      empty={stats === null && 'Compression is off (`compression: false`).'}
    >
      {stats !== null && (
        <>
          <Figures
            figures={[
              ['responses', grouped(stats.responses)],
              ['compressed', formatPercent(stats.responses === 0 ? 0 : stats.compressed / stats.responses)],
              ['from the cache', grouped(stats.cacheHits)],
              ['before', formatBytes(stats.bytesIn)],
              ['after', formatBytes(stats.bytesOut)],
              ['saved', formatSaved(stats.bytesIn, stats.bytesOut)],
              ['cache', formatBytes(stats.cacheBytes)],
            ]}
          />
          {stats.routes.length > 0 && <DataTable table={compressionTable(stats)} />}
        </>
      )}
    </Section>
  );
}

export function Deferred({ state: { sections, at } }: { state: State }) {
  const { defer, failedWork, rejected } = sections;
  const tables = [
    ['Refused for good', rejectedTable(rejected, at)],
    ['Failed lately', failedTable(failedWork.slice(-SHOWN_FAILED), at)],
  ] as const;
  return (
    <Section
      id="deferred"
      title="Deferred work"
      about="Work after the response, in this process and in a durable store."
    >
      {defer === null ? (
        <p class="empty">Deferred work is off (`defer: false`).</p>
      ) : (
        <Figures
          figures={[
            ...(['pending', 'running', 'accepted', 'completed', 'stored'] as const).map((name): Figure => [
              name,
              grouped(defer[name]),
            ]),
            ['waiting for the store', grouped(defer.buffered)],
            ['retried', grouped(defer.retried), defer.retried > 0 ? 'warn' : ''],
            ['failed', grouped(defer.failed), defer.failed > 0 ? 'bad' : ''],
            ['dropped', grouped(defer.dropped), defer.dropped > 0 ? 'bad' : ''],
          ]}
        />
      )}
      {tables.map(
        ([title, table]) =>
          table.rows.length > 0 && (
            <>
              <h3>{title}</h3>
              <DataTable table={table} />
            </>
          ),
      )}
    </Section>
  );
}
