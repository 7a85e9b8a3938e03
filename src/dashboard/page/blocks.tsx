import { useState } from 'preact/hooks';
import { counted, formatDuration, findPlace, formatSpan } from '../format.js';
import type { BlockRow } from '../view.js';
import { FlameGraph } from './flame-graph.js';
import { Copy, RouteName, Section } from './parts.js';
import type { DashboardData as State } from '../view.js';

const CAUSES: Readonly<Record<BlockRow['cause'], string>> = {
  javascript: 'JavaScript',
  'sync-io': 'synchronous input or output',
  gc: 'garbage collection',
  'not-scheduled': 'not scheduled by the operating system',
  'pile-up': 'many short pieces of work',
  unknown: 'cause unknown',
};

/** Causes that are no request. */
const NOBODYS: Partial<typeof CAUSES> = {
  'not-scheduled': 'The operating system kept the process waiting',
  'pile-up': 'Many short pieces of work, one after the other',
  gc: 'Garbage collection',
};

export function Blocks({ state: { sections, at } }: { state: State }) {
  const nothing =
    sections.eventLoop === null
      ? 'The event loop is not observed (`eventLoop: false`).'
      : 'No block since the process started.';
  return (
    <Section
      id="blocks"
      title="Event-loop blocks"
      about="Who held everybody up, at which line. The last ones first."
      empty={sections.blocks.length === 0 && nothing}
    >
      <ol class="blocks">
        {sections.blocks.map((block) => (
          <Block key={block.id} block={block} now={at} />
        ))}
      </ol>
    </Section>
  );
}

function Block({ block, now }: { block: BlockRow; now: number }) {
  const { route, handler, proven, stack, curl } = block;
  const [open, setOpen] = useState(false);
  const place = findPlace(block);
  return (
    <li>
      <p class="what">
        <b class="long">{formatDuration(block.durationMs)}</b>
        {route === null ? (
          <span class="route">{NOBODYS[block.cause] ?? 'Nobody known'}</span>
        ) : (
          <RouteName name={route} handler={handler} />
        )}
        {route !== null && !proven && <span class="tag">suspect</span>}
        <span class="when">{formatSpan(now - block.at)} ago</span>
      </p>
      <p class="where">
        {place === null ? '' : <code>{place}</code>}{' '}
        <span>
          {route === null && NOBODYS[block.cause] !== undefined ? 'nobody of the application' : CAUSES[block.cause]}
        </span>
        {block.gcMs >= 1 && <span>, {formatDuration(block.gcMs)} collecting garbage</span>}
        {block.count > 1 && (
          <span>
            , {counted(block.count, 'time')} so far, {formatDuration(block.totalMs)} in all, longest{' '}
            {formatDuration(block.maxMs)}
          </span>
        )}
        {block.waited > 0 && (
          <span title={block.waiters.join(', ')}>
            , {counted(block.waited, 'request')} waited: {block.waiters.slice(0, 3).join(', ')}
            {block.waiters.length > 3 ? ', …' : ''}
          </span>
        )}
      </p>
      {(curl !== null || stack.length > 0) && (
        <details onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>{curl === null ? 'Stack, flame graph' : 'Repeat it, stack, flame graph'}</summary>
          {curl !== null && <Copy text={curl} what="the curl line" />}
          {stack.length > 0 && <pre tabIndex={0}>{stack.join('\n')}</pre>}
          {open && stack.length > 0 && <FlameGraph label={route ?? 'background'} from={functionIn(block)} />}
        </details>
      )}
    </li>
  );
}

/** The application's function that the block's line is in; null where the shown stack does not reach it. */
function functionIn({ location, stack }: BlockRow): { name: string; file: string } | null {
  const line = stack.find((frame) => location !== null && frame.endsWith(`(${location})`));
  const name = /^(?:async )?(.+) \(/.exec(line ?? '')?.[1];
  return name === undefined ? null : { name, file: location!.replace(/:\d+:\d+$/, '') };
}
