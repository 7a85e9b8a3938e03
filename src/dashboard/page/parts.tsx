import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { grouped } from '../format.js';
import type { Column } from '../tables.js';

interface SectionProps {
  readonly id: string;
  readonly title: string;
  /** The section in a few words. */
  readonly about?: string | undefined;
  readonly aside?: ComponentChildren;
  /** Why there is nothing, and what to do; then the content is not shown. */
  readonly empty?: string | false | undefined;
  readonly children?: ComponentChildren;
}

export const Section = ({ id, title, about, aside, empty = false, children }: SectionProps) => (
  <section id={id} aria-labelledby={`${id}-title`}>
    <header>
      <h2 id={`${id}-title`}>{title}</h2>
      {about !== undefined && <p class="about">{about}</p>}
      {aside}
    </header>
    {empty === false ? children : <p class="empty">{empty}</p>}
  </section>
);

interface TableProps {
  readonly caption: string;
  readonly columns: readonly Column[];
  readonly rows?: readonly (readonly ComponentChildren[])[];
  /** Rows that are more than cells. */
  readonly children?: ComponentChildren;
  readonly class?: string;
  /** The column by which it is sorted, and the handler of a choice. */
  readonly sort?: { readonly name: string; readonly down: boolean; readonly by: (column: Column) => void };
}

const nameClass = ({ isText, rank }: Column): string =>
  `${isText === true ? 'text' : 'number'}${rank === undefined ? '' : ` rank${rank}`}`;

export const Table = ({ caption, columns, rows = [], children, class: name = '', sort }: TableProps) => (
  <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
    <table class={name}>
      <caption class="unseen">{caption}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <th
              key={column.name}
              scope="col"
              class={nameClass(column)}
              aria-sort={sort && (sort.name !== column.name ? 'none' : sort.down ? 'descending' : 'ascending')}
            >
              {sort === undefined ? (
                column.name
              ) : (
                <button type="button" onClick={() => sort.by(column)}>
                  {column.name}
                </button>
              )}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((values, index) => (
          <Row key={index} columns={columns} values={values} />
        ))}
        {children}
      </tbody>
    </table>
  </div>
);

interface RowProps extends Pick<TableProps, 'columns' | 'class'> {
  readonly values: readonly ComponentChildren[];
}

/** The first cell names the others. */
export const Row = ({ columns, values, class: name = '' }: RowProps) => (
  <tr class={name}>
    {columns.map((column, index) =>
      index === 0 ? (
        <th key={column.name} scope="row" class={nameClass(column)}>
          {values[index]}
        </th>
      ) : (
        <td key={column.name} class={nameClass(column)}>
          {values[index]}
        </td>
      ),
    )}
  </tr>
);

/** A count that matters when it is not 0. */
export function Count({ count, state = '' }: { count: number; state?: 'bad' | 'warn' | '' }) {
  if (count === 0) return <span class="none">0</span>;
  return state === '' ? <>{grouped(count)}</> : <b class={state}>{grouped(count)}</b>;
}

export type Figure = readonly [name: string, value: ComponentChildren, state?: string];

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
      <span class="method">{name.slice(0, space)}</span> <code>{name.slice(space + 1)}</code>
      {handler != null && <span class="handler">{handler}</span>}
    </span>
  );
}

/** How much of a limit is used. */
export function Meter({ name, share, text }: { name: string; share: number | null; text: string }) {
  const state = share === null ? '' : share > 0.9 ? 'bad' : share > 0.75 ? 'warn' : '';
  return (
    <div class={`meter ${state}`}>
      <span>{name}</span>
      <b>{text}</b>
      <span class="track" aria-hidden="true">
        <i style={{ width: `${Math.min(100, (share ?? 0) * 100)}%` }} />
      </span>
    </div>
  );
}

/** Requests lately, as bars. Decoration: the numbers are in the table. */
export function Sparkline({ values, count }: { values: readonly number[] | undefined; count: number }) {
  const max = Math.max(1, ...(values ?? []));
  const step = 80 / count;
  const offset = count - (values?.length ?? 0);
  return (
    <svg class="sparkline" viewBox="0 0 80 18" aria-hidden="true">
      <path d="M0 17.5H80" class="base" />
      {values !== undefined && (
        <path
          d={values
            .map((value, i) =>
              value === 0
                ? ''
                : `M${((offset + i + 0.5) * step).toFixed(1)} 17.5v-${(1 + (value / max) * 15).toFixed(1)}`,
            )
            .join('')}
        />
      )}
    </svg>
  );
}

/** Copies with one click; where the browser does not let it, as over plain http, the text is selected. */
export function Copy({ text, what }: { text: string; what: string }) {
  const [said, setSaid] = useState('Copy');
  const code = useRef<HTMLElement>(null);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid('Copied');
    } catch {
      getSelection()?.selectAllChildren(code.current!);
      setSaid('Selected: press Ctrl+C');
    }
    setTimeout(() => setSaid('Copy'), 2_000);
  };
  return (
    <div class="copy">
      <code ref={code}>{text}</code>
      <button type="button" onClick={() => void copy()} aria-label={`Copy ${what}`}>
        <span aria-live="polite">{said}</span>
      </button>
    </div>
  );
}
