import type { ModulesContainer } from '@nestjs/core';
import { getOrAdd } from '../core/get-or-add.js';
import { toEpochMs } from '../core/clock.js';
import { boolean, type Option } from '../core/option.js';
import type { WorkRecord, WorkType } from '../core/record.js';
import type { PerfSnapshot } from '../core/snapshot.js';
import { RecordHold } from '../ports/record-hold.js';
import { PerfApplication } from '../request/application.js';
import {
  optionalPort,
  provideFeature,
  type Feature,
  type FeatureBoot,
  type FeatureDefinition,
} from '../request/feature.js';
import { readHandler } from '../request/handlers.js';
import { findPrototype, listWrappers } from '../request/prototypes.js';
import { requestContext, type RequestState } from '../request/request-state.js';
import { isMeasured } from '../request/routes.js';
import { WorkRow } from './work-row.js';
import { isMeasuredClass, registerWorks, type MeasuredMethod, type Works } from './works.js';

/** Messages, jobs, events, sockets, resolvers and methods of one application: each call is a scope of its own. */
export class WorkFeature implements Feature, Works {
  private readonly rows = new Map<string, WorkRow>();
  private readonly calls = new WeakMap<RequestState, { readonly row: WorkRow; readonly overlapped: boolean }>();

  constructor(
    /** A global interceptor measures what nobody has decorated. */
    readonly isGlobal: boolean,
    readonly host: PerfApplication,
    private readonly holds: RecordHold | null,
  ) {}

  install({ modules }: FeatureBoot): void {
    this.host.requests.works = this;
    if (this.host.enabled) this.register(modules);
  }

  get isOpen(): boolean {
    return this.host.requests.works === this;
  }

  /** A call begins; null where it is not measured. `within`: the request or scope that it is a part of. */
  begin(type: WorkType, measured: MeasuredMethod, within = this.openScope()): RequestState | null {
    const { requests, nowMs, enabled } = this.host;
    if (!enabled || this.isUnderWay(measured)) return null;
    const row = this.findRow(type, measured);
    if (!isMeasured(row.route)) return null;
    const state = requests.begin(within);
    state.route = row.route;
    this.calls.set(state, { row, overlapped: row.running > 0 });
    row.started(nowMs());
    return state;
  }

  /** Aborted: the caller has left. */
  end(state: RequestState, failed: boolean, aborted = false): void {
    this.host.requests.end(state, aborted ? 499 : failed ? 500 : 200, aborted);
  }

  /** A step of the pipeline. */
  ended(state: RequestState): void {
    // An HTTP request is no call.
    if (state.request !== null) return;
    const call = this.calls.get(state);
    if (call === undefined) return;
    this.calls.delete(state);
    const durationMs = state.endedMs - state.startedMs;
    call.row.ended(durationMs, state.status === 500);
    const { within } = state;
    if (within !== null && durationMs >= (within.longestWork?.durationMs ?? 0))
      within.longestWork = { name: call.row.name, durationMs };
    if (!this.host.recorder.wanted) return;
    const record = (): void => {
      const { row, overlapped } = call;
      const written: WorkRecord = {
        kind: 'work',
        type: row.type,
        name: row.name,
        startedAt: toEpochMs(state.startedMs),
        durationMs,
        outcome: state.status === 500 ? 'failed' : 'completed',
        blockedMs: state.blockedMs,
        time: state.timing?.time ?? null,
        upstream: state.timing?.upstream ?? null,
        overlapped,
      };
      this.host.recorder.push(written);
    };
    if (this.holds?.hold(state, record) !== true) record();
  }

  snapshot(): Pick<PerfSnapshot, 'work' | 'findings'> {
    const rows = [...this.rows.values()];
    const nowMs = this.host.nowMs();
    return { work: rows.map((row) => row.snapshot()), findings: rows.flatMap((row) => row.missed(nowMs) ?? []) };
  }

  close(): void {
    if (this.isOpen) this.host.requests.works = null;
  }

  private register(modules: ModulesContainer): void {
    for (const wrapper of listWrappers(modules)) {
      const prototype = findPrototype(wrapper);
      if (prototype === null || !isMeasuredClass(prototype)) continue;
      const instance: unknown = wrapper.instance;
      registerWorks(this, prototype, typeof instance === 'object' ? instance : null);
    }
  }

  /** A handler may have an interceptor, or two, and the decorator: the first has begun the scope of the call. */
  private isUnderWay(measured: MeasuredMethod): boolean {
    const stored = requestContext.getStore();
    return stored !== undefined && this.calls.get(stored)?.row.name === nameMethod(measured);
  }

  private openScope(): RequestState | null {
    const stored = requestContext.getStore();
    if (stored === undefined || stored.owner !== this.host.requests) return null;
    const outer = stored.within ?? stored;
    return outer.closed ? null : outer;
  }

  private findRow(type: WorkType, measured: MeasuredMethod): WorkRow {
    const { owner, name, method } = measured;
    const full = nameMethod(measured);
    return getOrAdd(this.rows, `${type} ${full}`, () => {
      const route = this.host.routes.create(type.toUpperCase(), full, readHandler(owner, method, name));
      return new WorkRow(type, full, route);
    });
  }
}

/** `'ReportsJob.rebuild'` */
const nameMethod = ({ owner, name }: MeasuredMethod): string => `${owner.name}.${name}`;

const given = boolean({ default: false });

/** Null: only what is decorated is measured. */
const workOption: Option<{ readonly isGlobal: true } | null> = {
  expected: given.expected,
  read: (value, path) => (given.read(value, path) ? { isGlobal: true } : null),
};

export const workFeature: FeatureDefinition<'work', { readonly isGlobal: true }> = {
  name: 'work',
  title: 'messages and jobs',
  observes: 'process',
  option: workOption,
  token: WorkFeature,
  providers: [
    provideFeature(
      'work',
      WorkFeature,
      [PerfApplication, optionalPort(RecordHold)],
      (options: object | null, application: PerfApplication, holds: RecordHold | null) =>
        new WorkFeature(options !== null, application, holds),
    ),
  ],
};
