import { grouped, spanOf } from '../format.js';
import { Figures, Section, Table, type Column } from './parts.js';
import type { DashboardData as State } from '../view.js';

const FAILED: readonly Column[] = [
  { name: 'Work', isText: true },
  { name: 'When' },
  { name: 'Outcome', isText: true },
  { name: 'Attempt', rank: 2 },
  { name: 'Error', isText: true },
];
const REJECTED: readonly Column[] = [
  { name: 'Work', isText: true },
  { name: 'When' },
  { name: 'Id', isText: true, rank: 2 },
  { name: 'Error', isText: true },
];

const SHOWN = 10;

export function Deferred({ state: { sections, at } }: { state: State }) {
  const { defer, failedWork, rejected } = sections;
  return (
    <Section
      id="deferred"
      title="Deferred work"
      about="Work after the response, in this process and in a durable store."
    >
      {defer === null ? (
        <p class="empty">Deferred work is off (`defer: false`).</p>
      ) : (
        <Figures
          figures={[
            ['pending', grouped(defer.pending)],
            ['running', grouped(defer.running)],
            ['waiting for the store', grouped(defer.buffered)],
            ['accepted', grouped(defer.accepted)],
            ['completed', grouped(defer.completed)],
            ['stored', grouped(defer.stored)],
            ['retried', grouped(defer.retried), defer.retried > 0 ? 'warn' : ''],
            ['failed', grouped(defer.failed), defer.failed > 0 ? 'bad' : ''],
            ['dropped', grouped(defer.dropped), defer.dropped > 0 ? 'bad' : ''],
          ]}
        />
      )}
      {rejected.length > 0 && (
        <>
          <h3>Refused for good</h3>
          <Table
            caption="Work that its store has refused for good"
            columns={REJECTED}
            rows={rejected
              .toReversed()
              .map(({ id, name, rejectedAt, error }) => [
                <code>{name}</code>,
                `${spanOf(at - rejectedAt)} ago`,
                <code>{id}</code>,
                <span class="error">{error}</span>,
              ])}
          />
        </>
      )}
      {failedWork.length > 0 && (
        <>
          <h3>Failed lately</h3>
          <Table
            caption="Work that failed lately"
            columns={FAILED}
            rows={failedWork
              .toReversed()
              .slice(0, SHOWN)
              .map((work) => [
                <span>
                  <code>{work.name}</code> {work.route !== null && <small>{work.route}</small>}{' '}
                  {work.durable && <span class="tag">durable</span>}
                </span>,
                `${spanOf(at - work.at)} ago`,
                work.outcome,
                grouped(work.attempt),
                <span class="error">{work.error}</span>,
              ])}
          />
        </>
      )}
    </Section>
  );
}
