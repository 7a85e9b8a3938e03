import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import type { Cell, Column, DataTable as Data, Figure, PlainSection } from '../sections.js';

interface SectionProps {
  readonly id: string;
  readonly title: string;
  readonly about?: string | undefined;
  readonly aside?: ComponentChildren;
  /** Why there is nothing, and what to do; then the content is not shown. */
  readonly empty?: string | false | undefined;
  readonly children?: ComponentChildren;
}

export const Section = ({ id, title, about, aside, empty = false, children }: SectionProps) => (
  <section id={id} aria-labelledby={`${id}-title`}>
    <header class="row">
      <h2 id={`${id}-title`}>{title}</h2>
      <p class="dim">{about}</p>
      {aside}
    </header>
    {empty === false ? children : <p class="empty">{empty}</p>}
  </section>
);

export const Plain = ({ section: { figures, tables, empty, ...named } }: { section: PlainSection }) => {
  const filled = tables.filter(({ rows }) => rows.length > 0);
  return (
    <Section {...named} empty={figures.length === 0 && filled.length === 0 && empty}>
      {figures.length > 0 && <Figures figures={figures} />}
      {filled.map((table) => (
        <>
          {figures.length > 0 && <h3>{table.caption}</h3>}
          <DataTable table={table} />
        </>
      ))}
    </Section>
  );
};

interface TableProps {
  readonly caption: string;
  readonly columns: readonly Column[];
  readonly children: ComponentChildren;
  readonly class?: string;
  /** The column by which it is sorted, and the handler of a choice. */
  readonly sort?: { readonly name: string; readonly down: boolean; readonly by: (column: Column) => void };
}

export const Table = ({ caption, columns, children, class: name = '', sort }: TableProps) => (
  <div class="scroll box" tabIndex={0} role="region" aria-label={caption}>
    <table class={name}>
      <caption class="unseen">{caption}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <th
              key={column.name}
              scope="col"
              class={column.kind}
              aria-sort={sort && (sort.name !== column.name ? 'none' : sort.down ? 'descending' : 'ascending')}
            >
              {sort === undefined ? (
                column.name
              ) : (
                <button type="button" onClick={() => sort.by(column)}>
                  {column.name} {sort.name === column.name && (sort.down ? '↓' : '↑')}
                </button>
              )}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  </div>
);

interface RowProps {
  readonly columns: readonly Column[];
  readonly values: readonly ComponentChildren[];
  readonly class?: string;
}

/** The first cell names the others. */
export const Row = ({ columns: [first, ...columns], values, class: name = '' }: RowProps) => (
  <tr class={name}>
    <th scope="row" class={first!.kind}>
      {values[0]}
    </th>
    {columns.map(({ name: column, kind }, index) => (
      <td key={column} class={kind}>
        {values[index + 1]}
      </td>
    ))}
  </tr>
);

const SHOWN_ROWS = 200;

export const DataTable = ({ table: { caption, columns, rows } }: { table: Data }) => (
  <>
    <Table caption={caption} columns={columns}>
      {rows.slice(0, SHOWN_ROWS).map((row, index) => (
        <Row key={index} columns={columns} values={row.map(showCell)} />
      ))}
    </Table>
    {rows.length > SHOWN_ROWS && <p class="dim">{rows.length - SHOWN_ROWS} more</p>}
  </>
);

function showCell(cell: Cell) {
  if (typeof cell === 'string') return cell;
  const { text, as } = cell;
  if (as === 'code') return <code>{text}</code>;
  if (as === 'route') return <RouteName name={text} />;
  if (as === 'note') return <small>{text}</small>;
  if (as === 'error') return <span class="dim">{text}</span>;
  if (as === 'bad') return <b class="bad">{text}</b>;
  return (
    <b class="warn">
      {text}
      <span class="unseen"> (odd)</span>
    </b>
  );
}

export const Figures = ({ figures, class: name = 'figures' }: { figures: readonly Figure[]; class?: string }) => (
  <dl class={name}>
    {figures.map(([label, value, state = '']) => (
      <div key={label} class={state}>
        <dt>{label}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
);

/** `GET /users/:id`: the method is what one reads over. */
export function RouteName({ name, handler }: { name: string; handler?: string | null | undefined }) {
  const space = name.indexOf(' ');
  return (
    <span class="route">
      <b class="dim">{name.slice(0, space)}</b> <code>{name.slice(space + 1)}</code>
      {handler != null && <small>{handler}</small>}
    </span>
  );
}

/** Parts of a whole next to each other, each with a class for its colour. */
export const Bar = ({ parts }: { parts: readonly (readonly [color: string, share: number])[] }) => (
  <span class="track" aria-hidden="true">
    {parts.map(([color, share]) => (
      <i key={color} class={color} style={{ width: `${Math.min(1, share) * 100}%` }} />
    ))}
  </span>
);

/** Copies with one click; where the browser does not let it, as over plain http, the text is selected. */
export function Copy({ text, what }: { text: string; what: string }) {
  const [label, setLabel] = useState('Copy');
  const code = useRef<HTMLElement>(null);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setLabel('Copied');
    } catch {
      getSelection()?.selectAllChildren(code.current!);
      setLabel('Selected: press Ctrl+C');
    }
    setTimeout(() => setLabel('Copy'), 2_000);
  };
  return (
    <div class="row copy">
      <code ref={code}>{text}</code>
      <button type="button" class="end" onClick={() => void copy()} aria-label={`Copy ${what}`}>
        <span aria-live="polite">{label}</span>
      </button>
    </div>
  );
}
