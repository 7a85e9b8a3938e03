import { durationOf, grouped, percentOf } from '../format.js';
import { RouteName, Section, Table, type Column } from './parts.js';
import type { DashboardData as State } from '../view.js';

const COLUMNS: readonly Column[] = [
  { name: 'User', isText: true },
  { name: 'Route', isText: true },
  { name: 'Requests' },
  { name: 'Total time' },
  { name: 'Of it upstream', rank: 2 },
];

export const Users = ({ state: { sections } }: { state: State }) => (
  <Section
    id="users"
    title="Users"
    about="Who took most of the application's time in the last hour."
    empty={
      sections.users.length === 0 &&
      'No request came from a known user. A user is `request.user.id`, unless the option `unit` tells whom a request is for.'
    }
  >
    <Table
      caption="Users"
      columns={COLUMNS}
      rows={sections.users.map(({ unit, route, count, totalMs, upstreamMs }) => [
        <code>{unit}</code>,
        <RouteName name={route} />,
        grouped(count),
        durationOf(totalMs),
        percentOf(totalMs === 0 ? 0 : upstreamMs / totalMs),
      ])}
    />
  </Section>
);
