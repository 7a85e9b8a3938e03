import { useState } from 'preact/hooks';
import { counted, findPlace, formatDuration, formatSpan } from '../format.js';
import type { BlockRow, DashboardData as State } from '../view.js';
import { FlameGraph } from './flame-graph.js';
import type { FunctionName } from './flame.js';
import { Copy, RouteName, Section } from './parts.js';

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
      <ol class="blocks box list">
        {sections.blocks.map((block) => (
          <Block key={block.id} block={block} now={at} />
        ))}
      </ol>
    </Section>
  );
}

function Block({ block, now }: { block: BlockRow; now: number }) {
  const { route, handler, proven, stack, curl, cause, gcMs, count, waited, waiters } = block;
  const [open, setOpen] = useState(false);
  const nobody = route === null ? NOBODYS[cause] : undefined;
  const facts = [
    nobody === undefined ? CAUSES[cause] : 'nobody of the application',
    gcMs >= 1 && `${formatDuration(gcMs)} collecting garbage`,
    count > 1 &&
      `${counted(count, 'time')} so far, ${formatDuration(block.totalMs)} in all, longest ${formatDuration(block.maxMs)}`,
    waited > 0 &&
      `${counted(waited, 'request')} waited: ${waiters.slice(0, 3).join(', ')}${waiters.length > 3 ? ', …' : ''}`,
  ];
  return (
    <li>
      <p class="row">
        <b>{formatDuration(block.durationMs)}</b>
        {route === null ? <span>{nobody ?? 'Nobody known'}</span> : <RouteName name={route} handler={handler} />}
        {route !== null && !proven && <span class="tag">suspect</span>}
        <span class="end dim">{formatSpan(now - block.at)} ago</span>
      </p>
      <div class="inset dim">
        <code>{findPlace(block)}</code> <span title={waiters.join(', ')}>{facts.filter(Boolean).join(', ')}</span>
        {(curl !== null || stack.length > 0) && (
          <details onToggle={(event) => setOpen(event.currentTarget.open)}>
            <summary>{curl === null ? 'Stack, flame graph' : 'Repeat it, stack, flame graph'}</summary>
            {curl !== null && <Copy text={curl} what="the curl line" />}
            {stack.length > 0 && <pre tabIndex={0}>{stack.join('\n')}</pre>}
            {open && stack.length > 0 && <FlameGraph label={route ?? 'background'} from={findFunction(block)} />}
          </details>
        )}
      </div>
    </li>
  );
}

/** The application's function that the block's line is in; null where the shown stack does not reach it. */
function findFunction({ location, stack }: BlockRow): FunctionName | null {
  const line = stack.find((frame) => location !== null && frame.endsWith(`(${location})`));
  const name = /^(?:async )?(.+) \(/.exec(line ?? '')?.[1];
  if (name === undefined) return null;
  return { name: name === '<anonymous>' ? '(anonymous)' : name, file: location!.replace(/:\d+:\d+$/, '') };
}
