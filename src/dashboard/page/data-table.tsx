import type { Cell, DataTable as Data } from '../tables.js';
import { RouteName, Table } from './parts.js';

export const DataTable = ({ table: { caption, columns, rows } }: { table: Data }) => (
  <Table caption={caption} columns={columns} rows={rows.map((row) => row.map((cell) => <CellView cell={cell} />))} />
);

function CellView({ cell }: { cell: Cell }) {
  if (typeof cell === 'string') return <>{cell}</>;
  const { text, as } = cell;
  if (as === 'code') return <code>{text}</code>;
  if (as === 'route') return <RouteName name={text} />;
  if (as === 'note') return <small>{text}</small>;
  if (as === 'error') return <span class="error">{text}</span>;
  if (as === 'bad') return <b class="bad">{text}</b>;
  return (
    <b class="warn">
      {text}
      <span class="unseen"> (odd)</span>
    </b>
  );
}
