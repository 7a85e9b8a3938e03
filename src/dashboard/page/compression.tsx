import { bytesOf, grouped, percentOf } from '../format.js';
import { Cells, Empty, Figures, RouteName, Section, Table, type Column } from './parts.js';
import type { State } from './state.js';

const COLUMNS: readonly Column[] = [
  { name: 'Route', isText: true },
  { name: 'Compressed' },
  { name: 'From the cache', rank: 2 },
  { name: 'Before', rank: 1 },
  { name: 'After', rank: 1 },
  { name: 'Saved' },
];

export function Compression({ state: { sections } }: { state: State }) {
  const { compression } = sections;
  return (
    <Section id="compression" title="Compression and shared answers" about="Bytes that did not have to travel.">
      {compression === null ? (
        <Empty>Compression is off (`compression: false`).</Empty>
      ) : (
        <>
          <Figures
            figures={[
              ['responses', grouped(compression.responses)],
              [
                'compressed',
                percentOf(compression.responses === 0 ? 0 : compression.compressed / compression.responses),
              ],
              ['from the cache', grouped(compression.cacheHits)],
              ['before', bytesOf(compression.bytesIn)],
              ['after', bytesOf(compression.bytesOut)],
              ['saved', percentOf(compression.bytesIn === 0 ? 0 : 1 - compression.bytesOut / compression.bytesIn)],
              ['cache', bytesOf(compression.cacheBytes)],
            ]}
          />
          {compression.routes.length > 0 && (
            <Table caption="Compression by route" columns={COLUMNS}>
              {compression.routes.map(({ method, route, compressed, cacheHits, bytesIn, bytesOut }) => (
                <Cells
                  key={`${method} ${route}`}
                  columns={COLUMNS}
                  values={[
                    <RouteName name={`${method} ${route}`} />,
                    grouped(compressed),
                    grouped(cacheHits),
                    bytesOf(bytesIn),
                    bytesOf(bytesOut),
                    percentOf(bytesIn === 0 ? 0 : 1 - bytesOut / bytesIn),
                  ]}
                />
              ))}
            </Table>
          )}
        </>
      )}
    </Section>
  );
}
