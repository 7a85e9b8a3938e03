import type { ModulesContainer } from '@nestjs/core';
import { getOrAdd } from '../core/get-or-add.js';
import { toEpochMs } from '../core/clock.js';
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
import { findPrototype, listMethods, listWrappers } from '../request/prototypes.js';
import { requestContext, type RequestState } from '../request/request-state.js';
import { readHandler } from '../request/route-handler.js';
import { isMeasured } from '../request/routes.js';
import { workOption } from './work.options.js';
import { WorkRow } from './work-row.js';
import { CronSchedules, type CronRegistry } from './job-schedule.js';
import { readSchedule } from './work-type.js';
import { isMeasuredClass, isMeasuredMethod, registerWorks, type MeasuredMethod, type Works } from './works.js';

/** Messages, jobs, events, sockets, resolvers and methods of one application: each call is a scope of its own. */
export class WorkFeature implements Feature, Works {
  private readonly rows = new Map<string, WorkRow>();
  private readonly announced = new WeakMap<RequestState, MeasuredMethod>();
  /** Null without @nestjs/schedule. */
  private cron: CronSchedules | null = null;
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
    if (!enabled) return null;
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

  /** The interceptor has begun the scope of this handler's call. */
  announce(state: RequestState, handler: MeasuredMethod): void {
    this.announced.set(state, handler);
  }

  isAnnounced({ owner, name, method }: MeasuredMethod): boolean {
    const stored = requestContext.getStore();
    const handler = stored && this.announced.get(stored);
    if (handler === undefined) return false;
    // Another decorator may have wrapped the measured method.
    const isHandler = handler.method === method || (handler.owner === owner && handler.name === name);
    return isHandler && this.announced.delete(stored!);
  }

  /** A step of the pipeline. */
  ended(state: RequestState): void {
    const call = this.calls.get(state);
    if (call === undefined) return;
    this.calls.delete(state);
    const durationMs = state.endedMs - state.startedMs;
    call.row.ended(durationMs, state.status === 500);
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
    const wrappers = listWrappers(modules);
    const registry: unknown = wrappers.find(({ name }) => name === 'SchedulerRegistry')?.instance;
    if (typeof (registry as Partial<CronRegistry> | undefined)?.getCronJobs === 'function')
      this.cron = new CronSchedules(registry as CronRegistry);
    for (const wrapper of wrappers) {
      const prototype = findPrototype(wrapper);
      if (prototype === null || !isMeasuredClass(prototype)) continue;
      const instance: unknown = wrapper.instance;
      registerWorks(this, prototype, typeof instance === 'object' ? instance : null);
      this.expectRuns(prototype);
    }
  }

  /** A job that never starts is missed too, where its decorator has a schedule. */
  private expectRuns(prototype: object): void {
    const owner = prototype.constructor;
    for (const [name, method] of listMethods(prototype))
      if (isMeasuredMethod(method) && readSchedule(method, this.cron) !== null)
        this.findRow('cron', { owner, name, method });
  }

  private openScope(): RequestState | null {
    const stored = requestContext.getStore();
    if (stored === undefined || stored.owner !== this.host.requests) return null;
    const outer = stored.within ?? stored;
    return outer.closed ? null : outer;
  }

  private findRow(type: WorkType, { owner, name, method }: MeasuredMethod): WorkRow {
    const { routes, nowMs } = this.host;
    const full = `${owner.name}.${name}`;
    return getOrAdd(this.rows, `${type} ${full}`, () => {
      const route = routes.create(type.toUpperCase(), full, readHandler(owner, method, name));
      return new WorkRow(type, full, route, readSchedule(method, this.cron), nowMs());
    });
  }
}

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
