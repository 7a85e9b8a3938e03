import { Fragment, render, type ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { counted, formatSpan, grouped } from '../format.js';
import { describeExperiments, describePods, describeSections, type Figure } from '../sections.js';
import type { DashboardData as State, Scope } from '../view.js';
import { Blocks } from './blocks.js';
import { formatTime } from './chart.js';
import { Container } from './container.js';
import { Now } from './now.js';
import { Figures, Plain } from './parts.js';
import { usePolling, type Link } from './polling.js';
import { Requests } from './requests.js';

/** The state of the connection in a few words; why nothing new comes, and what to do. */
const LINKS: Readonly<Record<Link, readonly [name: string, trouble?: string]>> = {
  loading: ['Loading'],
  live: ['Live'],
  paused: ['Paused'],
  lost: ['No answer', 'The application does not answer. Trying again.'],
  refused: [
    'No access',
    'You may not look any more: a restart makes a new token, and access ends after some hours. Open the address from the log of the process again.',
  ],
};

const OTHERS =
  'Blocks, container, deferred work, jobs, upstreams, users, compression and experiments are of one pod: choose “This pod”.';

/** A section, its name in the head of the page, and how much there is in it. */
type Part = readonly [id: string, name: string, count: number | null, section: ComponentChildren];

function App() {
  const [open, setOpen] = useState<string | null>(null);
  const [scope, setScope] = useState<Scope | null>(null);
  const polled = usePolling({ scope, routeId: open });
  const { state, link } = polled;
  useEffect(() => {
    if (state === null) return;
    const { length } = state.sections.now;
    document.title = `${length > 0 ? `(${length}) ` : ''}Perf: ${state.scope === 'fleet' ? 'all pods' : state.process.pod}`;
  }, [state]);
  const requests = state && <Requests state={state} open={open} onOpen={setOpen} />;
  const parts = state === null ? [] : listParts(state, requests);
  const [, trouble] = LINKS[link];
  return (
    <>
      <header class="top">
        <Head {...polled} onScope={setScope} />
        <nav aria-label="Sections">
          {parts.map(([id, name, count]) => (
            <a key={id} href={`#${id}`}>
              {name}
              {count !== null && count > 0 && <span class="tag">{grouped(count)}</span>}
            </a>
          ))}
        </nav>
      </header>
      <main>
        {trouble !== undefined && (
          <p class="trouble" role="alert">
            {trouble} {state !== null && `What you see is of ${formatTime(state.at)}.`}
          </p>
        )}
        {parts.map(([id, , , section]) => (
          <Fragment key={id}>{section}</Fragment>
        ))}
        {state === null && (
          <p class="lone" role="status">
            {link === 'loading' ? 'Asking the application…' : ''}
          </p>
        )}
        {state?.scope === 'fleet' && <p class="dim">{OTHERS}</p>}
      </main>
    </>
  );
}

function listParts(state: State, requests: ComponentChildren): Part[] {
  const { pods, podCount, totals, at, scope, sections } = state;
  const { now, blocks, experiments } = sections;
  const ofAll: Part[] = [
    ['now', 'Now', now.length, <Now state={state} />],
    ...(pods === null
      ? []
      : ([['pods', 'Pods', podCount, <Plain section={describePods(pods, podCount, at)} />]] as Part[])),
    ['requests', 'Requests', totals?.routes ?? 0, requests],
  ];
  if (scope === 'fleet') return ofAll;
  const plain = describeSections(state).map((section): Part => {
    const rows = section.tables.reduce((sum, table) => sum + table.rows.length, 0);
    return [section.id, section.title.split(/,| and/)[0]!, rows, <Plain section={section} />];
  });
  return [
    ...ofAll,
    ['blocks', 'Blocks', blocks.length, <Blocks state={state} />],
    ['container', 'Container', null, <Container state={state} />],
    ...plain,
    ['experiments', 'Experiments', experiments.length, <Plain section={describeExperiments(state)} />],
  ];
}

/** The process that is shown, and whether it answers. */
function Head({
  state,
  link,
  togglePause,
  onScope,
}: ReturnType<typeof usePolling> & { onScope: (scope: Scope) => void }) {
  return (
    <div class="row">
      <h1>
        <i class="swatch accent" />
        Perf
      </h1>
      {state?.isShared === true && (
        <div role="group" aria-label="Whose figures">
          {SCOPES.map(([scope, name]) => (
            <button key={scope} type="button" aria-pressed={scope === state.scope} onClick={() => onScope(scope)}>
              {name}
            </button>
          ))}
        </div>
      )}
      {state !== null && <Figures class="who" figures={state.scope === 'fleet' ? nameFleet(state) : namePod(state)} />}
      <p class={`link ${link}`} role="status">
        <i class="swatch dot" />
        {LINKS[link][0]}
      </p>
      <button type="button" onClick={togglePause}>
        {link === 'paused' ? 'Go on' : 'Pause'}
      </button>
    </div>
  );
}

const SCOPES: readonly [Scope, string][] = [
  ['fleet', 'All pods'],
  ['pod', 'This pod'],
];

const nameFleet = ({ podCount, process: { pod } }: State): Figure[] => [
  ['showing', podCount === 0 ? 'all pods' : counted(podCount, 'pod')],
  ['as seen by', pod, 'rank2'],
];

const namePod = ({ process: { pod, release, node, pid, startedAt }, at }: State): Figure[] => [
  ['pod', pod],
  ['release', release ?? 'unknown'],
  ['up', formatSpan(at - startedAt), 'rank2'],
  ['Node', `${node}, pid ${pid}`, 'rank3'],
];

render(<App />, document.getElementById('app')!);
