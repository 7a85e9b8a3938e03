import type { CompressionStats } from '../../core/snapshot.js';
import { bytesOf, grouped, percentOf } from '../format.js';
import { Figures, RouteName, Section, Table, type Column } from './parts.js';
import type { DashboardData as State } from '../view.js';

const COLUMNS: readonly Column[] = [
  { name: 'Route', isText: true },
  { name: 'Compressed' },
  { name: 'From the cache', rank: 2 },
  { name: 'Before', rank: 1 },
  { name: 'After', rank: 1 },
  { name: 'Saved' },
];

export const Compression = ({ state: { sections } }: { state: State }) => (
  <Section
    id="compression"
    title="Compression and shared answers"
    about="Bytes that did not have to travel."
    empty={sections.compression === null && 'Compression is off (`compression: false`).'}
  >
    {sections.compression !== null && <Stats stats={sections.compression} />}
  </Section>
);

const saved = (bytesIn: number, bytesOut: number): string => percentOf(bytesIn === 0 ? 0 : 1 - bytesOut / bytesIn);

function Stats({ stats }: { stats: CompressionStats }) {
  const { responses, compressed, cacheHits, bytesIn, bytesOut, cacheBytes, routes } = stats;
  return (
    <>
      <Figures
        figures={[
          ['responses', grouped(responses)],
          ['compressed', percentOf(responses === 0 ? 0 : compressed / responses)],
          ['from the cache', grouped(cacheHits)],
          ['before', bytesOf(bytesIn)],
          ['after', bytesOf(bytesOut)],
          ['saved', saved(bytesIn, bytesOut)],
          ['cache', bytesOf(cacheBytes)],
        ]}
      />
      {routes.length > 0 && (
        <Table
          caption="Compression by route"
          columns={COLUMNS}
          rows={routes.map((route) => [
            <RouteName name={`${route.method} ${route.route}`} />,
            grouped(route.compressed),
            grouped(route.cacheHits),
            bytesOf(route.bytesIn),
            bytesOf(route.bytesOut),
            saved(route.bytesIn, route.bytesOut),
          ])}
        />
      )}
    </>
  );
}
