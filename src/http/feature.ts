import type { ModulesContainer, AbstractHttpAdapter } from '@nestjs/core';
import type { MonotonicClock } from '../core/clock.js';
import type { Option } from '../core/option.js';
import type { Recorder } from '../core/recorder.js';
import type { OncePerCause, Reporter } from '../core/reporter.js';
import type { RequestUnits } from '../core/request-unit.js';
import type { PerfSnapshot } from '../core/snapshot.js';
import type { Steps } from '../core/turns.js';
import type { ControllerHandlers } from './handlers.js';
import type { RequestLifecycle } from './lifecycle.js';
import type { Platform } from './platform.js';
import type { Routes } from '../core/route.js';

/** The application that a feature is made for. What one feature needs of another is a port of the core, kept on `requests`. */
export interface FeatureHost {
  readonly requests: RequestLifecycle;
  readonly routes: Routes;
  readonly handlers: ControllerHandlers;
  readonly recorder: Recorder;
  readonly report: OncePerCause;
  readonly logger: Reporter;
  readonly nowMs: MonotonicClock;
  readonly flushTimeoutMs: number;
  readonly units: RequestUnits;
  readonly enabled: boolean;
  readonly release: string | null;
}

/** What is known when the application's modules have been made, and its routes are not registered yet. */
export interface FeatureBoot {
  readonly modules: ModulesContainer;
  /** Both null in an application without HTTP, or on a server framework that is not known. */
  readonly platform: Platform | null;
  readonly adapter: AbstractHttpAdapter | null;
}

/** One feature of one application, from boot to close. */
export interface Feature {
  readonly service?: object;
  /** Before routes are registered. What it throws stops the boot. */
  install?(boot: FeatureBoot): void | Promise<void>;
  /** When every module has been initialised, before the server listens. */
  start?(): void | Promise<void>;
  snapshot?(): Partial<PerfSnapshot>;
  /** The same of a feature with much to tell. */
  snapshotSteps?(): Steps<Partial<PerfSnapshot>>;
  /** What keeps the process from doing its work and no snapshot tells, in words. */
  reasons?(): readonly string[];
  /** Resolves when what has happened so far is done and recorded. */
  idle?(): Promise<void>;
  /** The application begins to close, and may still serve requests. */
  closing?(): void | Promise<void>;
  /** The server has closed: finishes its work, pushes its last records, leaves no timer or thread. */
  drain?(): void | Promise<void>;
  close?(): void | Promise<void>;
}

export interface FeatureDefinition<Name extends string, Options> {
  readonly name: Name;
  /** In the first line of the log: `'event loop'`. */
  readonly title: string;
  /** What it observes: the process, requests, or requests in the context store, without which it tells less. */
  readonly observes: 'process' | 'requests' | 'context';
  /** It does nothing in an application without an HTTP server. */
  readonly needsServer?: true;
  /** The class of {@link Feature.service}, injectable whether or not the feature is on. */
  readonly service?: abstract new (...given: never[]) => object;
  /** It listens to the recorder: records are written for it where there is no sink as well. */
  readonly hearsRecords?: true;
  /** The application's own work, which goes on with `enabled: false`. */
  readonly isApplicationsOwn?: true;
  readonly option: Option<Options | null>;
  /** `options` null: it is off, and exists for its service and for what must be said. */
  create(options: Options | null, host: FeatureHost): Feature;
}
