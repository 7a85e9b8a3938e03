import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { durationOf, ownOf } from '../format.js';
import type { RouteRow } from '../view.js';

interface SectionProps {
  readonly id: string;
  readonly title: string;
  /** What the section tells, in a few words. */
  readonly about?: ComponentChildren;
  readonly aside?: ComponentChildren;
  readonly children: ComponentChildren;
}

export const Section = ({ id, title, about, aside, children }: SectionProps) => (
  <section id={id} aria-labelledby={`${id}-title`}>
    <header>
      <h2 id={`${id}-title`}>{title}</h2>
      {about !== undefined && <p class="about">{about}</p>}
      {aside}
    </header>
    {children}
  </section>
);

/** A section without content: why, and what to do. */
export const Empty = ({ children }: { children: ComponentChildren }) => <p class="empty">{children}</p>;

export interface Column {
  readonly name: string;
  /** Text columns stand left. */
  readonly isText?: boolean;
  /** Hidden where there is little room: 1 goes last. */
  readonly rank?: 1 | 2 | 3;
}

interface TableProps {
  readonly caption: string;
  readonly columns: readonly Column[];
  readonly children: ComponentChildren;
}

export const classOf = ({ isText, rank }: Column): string =>
  [isText === true ? 'text' : 'number', rank === undefined ? '' : `rank${rank}`].join(' ').trim();

export const Table = ({ caption, columns, children }: TableProps) => (
  <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
    <table>
      <caption class="unseen">{caption}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.name} scope="col" class={classOf(column)}>
              {column.name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  </div>
);

/** A row of plain cells below {@link Column}s. */
export const Cells = ({ columns, values }: { columns: readonly Column[]; values: readonly ComponentChildren[] }) => (
  <tr>
    {values.map((value, index) => (
      <td key={columns[index]!.name} class={classOf(columns[index]!)}>
        {value}
      </td>
    ))}
  </tr>
);

export const Figures = ({ figures }: { figures: readonly (readonly [string, ComponentChildren, string?])[] }) => (
  <dl class="figures">
    {figures.map(([name, value, state = '']) => (
      <div key={name} class={state}>
        <dt>{name}</dt>
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
    setSaid((await copied(text, code.current!)) ? 'Copied' : 'Selected: press Ctrl+C');
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

async function copied(text: string, element: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection()?.selectAllChildren(element);
    return false;
  }
}

/** Until the own work can be told, waiting may be work. */
export const waitName = (row: RouteRow): string =>
  ownOf(row).isWhole ? 'waiting for the event loop' : 'working or waiting';

export function ownText(row: RouteRow): string {
  const { ms, isWhole } = ownOf(row);
  return isWhole || ms === null ? durationOf(ms) : `at least ${durationOf(ms)}`;
}
