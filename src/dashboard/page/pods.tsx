import { bytesOf, counted, grouped, msOf, percentOf, spanOf } from '../format.js';
import type { DashboardData, PodRow } from '../view.js';
import { Section, Table, type Column } from './parts.js';

const COLUMNS: readonly Column[] = [
  { name: 'Pod', isText: true },
  { name: 'Release', isText: true },
  { name: 'Requests' },
  { name: '5xx' },
  { name: 'p95 ms' },
  { name: 'Event loop' },
  { name: 'Throttled', rank: 2 },
  { name: 'Memory', rank: 1 },
  { name: 'Told', rank: 3 },
];
const SHOWN = 200;

/** How each pod's last minute was; the odd one is marked. */
export function Pods({ state: { pods, at } }: { state: DashboardData }) {
  if (pods === null) return null;
  return (
    <Section
      id="pods"
      title="Pods"
      about="The last minute of each. Marked is what is at least twice the median of the others."
      empty={pods.length === 0 && 'No pod has told anything yet: each does once a minute.'}
    >
      <Table caption="Pods" columns={COLUMNS} rows={pods.slice(0, SHOWN).map((pod) => cellsOf(pod, at))} />
      {pods.length > SHOWN && <p class="more">{counted(pods.length - SHOWN, 'more pod')}</p>}
    </Section>
  );
}

function cellsOf(pod: PodRow, now: number) {
  const marked = (key: keyof PodRow, text: string) =>
    pod.odd.includes(key as (typeof pod.odd)[number]) ? (
      <b class="warn">
        {text}
        <span class="unseen"> (odd)</span>
      </b>
    ) : (
      text
    );
  return [
    <code>{pod.pod}</code>,
    pod.release === '' ? '–' : pod.release,
    grouped(pod.requests),
    marked('errors', grouped(pod.errors)),
    marked('p95Ms', msOf(pod.p95Ms)),
    marked('loopBusy', percentOf(pod.loopBusy)),
    marked('throttled', percentOf(pod.throttled)),
    marked('memoryBytes', bytesOf(pod.memoryBytes)),
    `${spanOf(now - pod.at)} ago`,
  ];
}
