import { useEffect, useState } from 'preact/hooks';
import { counted, grouped, formatSpan } from '../format.js';
import { Blocks } from './blocks.js';
import { Container } from './container.js';
import { Experiments } from './experiments.js';
import { Now } from './now.js';
import { Figures, type Figure } from './parts.js';
import { usePolling, type Link, type Polled } from './polling.js';
import { Compression, Deferred, Pods, Upstreams, Users } from './plain-sections.js';
import { Requests } from './requests.js';
import type { DashboardData as State, Scope } from '../view.js';
import { formatTime } from './time.js';

const LINKS: Readonly<Record<Link, string>> = {
  loading: 'Loading',
  live: 'Live',
  paused: 'Paused',
  idle: 'Paused: nobody was here for 15 min',
  lost: 'No answer',
  refused: 'No access',
  full: 'Too many viewers',
};

export function App() {
  const [filter, setFilter] = useState('');
  const [open, setOpen] = useState<string | null>(null);
  const [scope, setScope] = useState<Scope | null>(null);
  const polled = usePolling({ scope, filter, routeId: open });
  const { state, link } = polled;
  useEffect(() => {
    if (state !== null)
      document.title = `${state.sections.now.length > 0 ? `(${state.sections.now.length}) ` : ''}Perf: ${state.scope === 'fleet' ? 'all pods' : state.process.pod}`;
  }, [state]);
  return (
    <>
      <Header polled={polled} onScope={setScope} />
      <main>
        <Trouble link={link} state={state} />
        {state === null ? (
          <p class="lone" role="status">
            {link === 'loading' ? 'Asking the application…' : ''}
          </p>
        ) : (
          <>
            <Now state={state} />
            <Pods state={state} />
            <Requests state={state} filter={filter} onFilter={setFilter} open={open} onOpen={setOpen} />
            {state.scope === 'pod' ? <PodSections state={state} /> : <p class="more">{OTHERS}</p>}
          </>
        )}
      </main>
    </>
  );
}

const OTHERS =
  'Blocks, container, deferred work, upstreams, users, compression and experiments are of one pod: choose “This pod”.';

/** Sections of one pod alone. */
const PodSections = ({ state }: { state: State }) => (
  <>
    <Blocks state={state} />
    <Container state={state} />
    <Deferred state={state} />
    <Upstreams state={state} />
    <Users state={state} />
    <Compression state={state} />
    <Experiments state={state} />
  </>
);

interface HeaderProps {
  readonly polled: Polled;
  readonly onScope: (scope: Scope) => void;
}

function Header({ polled: { state, link, everyMs, pause, resume }, onScope }: HeaderProps) {
  const isStopped = link === 'paused' || link === 'idle';
  return (
    <header class="top">
      <div class="bar">
        <h1>Perf</h1>
        {state?.isShared === true && <Scopes shown={state.scope} onScope={onScope} />}
        {state !== null && <Figures class="who" figures={describeWho(state)} />}
        <p class={`link ${link}`} role="status">
          <i />
          {LINKS[link]}
          {link === 'live' && <span class="every"> every {everyMs / 1_000} s</span>}
        </p>
        <button type="button" onClick={isStopped ? resume : pause}>
          {isStopped ? 'Go on' : 'Pause'}
        </button>
      </div>
      {state !== null && <Sections state={state} />}
    </header>
  );
}

const SCOPES: readonly [Scope, string][] = [
  ['fleet', 'All pods'],
  ['pod', 'This pod'],
];

const Scopes = ({ shown, onScope }: { shown: Scope; onScope: (scope: Scope) => void }) => (
  <div class="scopes" role="group" aria-label="Whose figures">
    {SCOPES.map(([scope, name]) => (
      <button key={scope} type="button" aria-pressed={scope === shown} onClick={() => onScope(scope)}>
        {name}
      </button>
    ))}
  </div>
);

const describeWho = (state: State): Figure[] => (state.scope === 'fleet' ? describeFleet(state) : describePod(state));

const describeFleet = ({ pods, process: { pod } }: State): Figure[] => [
  ['showing', counted(pods?.length ?? 0, 'pod')],
  ['told by', pod, 'rank2'],
];

const describePod = ({ process: { pod, release, node, pid, startedAt }, at }: State): Figure[] => [
  ['pod', pod],
  ['release', release ?? 'unknown'],
  ['up', formatSpan(at - startedAt), 'rank2'],
  ['Node', `${node}, pid ${pid}`, 'rank3'],
];

function Sections({ state: { scope, pods, sections, totals } }: { state: State }) {
  const ofAll: [string, string, number | null][] = [
    ['now', 'Now', sections.now.length],
    ...(pods === null ? [] : [['pods', 'Pods', pods.length] as [string, string, number]]),
    ['requests', 'Requests', totals?.routes ?? 0],
  ];
  const ofPod: [string, string, number | null][] = [
    ['blocks', 'Blocks', sections.blocks.length],
    ['container', 'Container', null],
    ['deferred', 'Deferred work', sections.failedWork.length + sections.rejected.length],
    ['upstreams', 'Upstreams', sections.upstream.length],
    ['users', 'Users', sections.users.length],
    ['compression', 'Compression', null],
    ['experiments', 'Experiments', sections.experiments.length],
  ];
  return (
    <nav aria-label="Sections">
      {[...ofAll, ...(scope === 'pod' ? ofPod : [])].map(([id, name, count]) => (
        <a key={id} href={`#${id}`}>
          {name}
          {count !== null && count > 0 && <span class="count">{grouped(count)}</span>}
        </a>
      ))}
    </nav>
  );
}

/** Why nothing new comes, and what to do. */
function Trouble({ link, state }: { link: Link; state: State | null }) {
  const since = state === null ? '' : ` What you see is of ${formatTime(state.at)}.`;
  const text = {
    lost: `The application does not answer. Trying again.${since}`,
    refused:
      `You may not look any more: a restart makes a new token, and access ends after some hours.${since} ` +
      'Open the address from the log of the process again.',
    full: `Eight people look already. Trying again.${since}`,
    idle: `Nobody was here for 15 minutes, so nothing is asked any more.${since}`,
  }[link as string];
  return text === undefined ? null : (
    <p class="trouble" role="alert">
      {text}
    </p>
  );
}
