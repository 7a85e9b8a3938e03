import type { FactoryProvider, InjectionToken, Provider } from '@nestjs/common';
import type { AbstractHttpAdapter, ModulesContainer } from '@nestjs/core';
import type { Option } from '../core/option.js';
import type { PerfSink } from '../core/sink.js';
import type { PerfSnapshot } from '../core/snapshot.js';
import type { Steps } from '../core/turns.js';
import type { HealthReason } from '../ports/overview.js';
import type { ControllerMethod } from './handlers.js';
import type { Platform } from './platform.js';

/** Token of an object whose `resolved` has the options of all features, by their names. */
export const FEATURE_OPTIONS = Symbol('PERF_RESOLVED_OPTIONS');

/** The application at the time when its modules have been made and its routes are not registered yet. */
export interface FeatureBoot {
  readonly modules: ModulesContainer;
  /** The route methods of all controllers. */
  readonly handlers: readonly ControllerMethod[];
  /** Both null in an application without HTTP. */
  readonly platform: Platform | null;
  readonly adapter: AbstractHttpAdapter | null;
}

/** One feature of one application, from boot to close. */
export interface Feature {
  /** Receives records beside the application's sinks. */
  readonly sink?: PerfSink;
  /** Before routes are registered. An error stops the boot. */
  install?(boot: FeatureBoot): void | Promise<void>;
  /** When every module has been initialised, before the server listens. */
  start?(): void | Promise<void>;
  snapshot?(): Partial<PerfSnapshot>;
  /** The snapshot in small steps, for a feature with many figures. */
  snapshotSteps?(): Steps<Partial<PerfSnapshot>>;
  /** Reasons for a degraded `perf.health()`: in the snapshot, or what only the feature knows. */
  reasons?(snapshot: PerfSnapshot): readonly HealthReason[];
  /** Reasons against new requests, in words: with one, `perf.ready()` is false. */
  unready?(): readonly string[];
  /** Resolves when everything so far is done and recorded. */
  idle?(): Promise<void>;
  /** The application begins to close, and may still serve requests. */
  closing?(): void | Promise<void>;
  /** The server has closed: finishes accepted work, pushes the last records, leaves no timer or thread. The times are what is left. */
  drain?(drainMs: number, flushMs: number): void | Promise<void>;
  /** Open requests keep the server from closing: finishes accepted work, and still accepts more. */
  drainEarly?(drainMs: number): Promise<void>;
  /** Every feature has drained, and the sinks are closed. */
  close?(flushMs: number): void | Promise<void>;
}

export interface FeatureDefinition<Name extends string, Options> {
  readonly name: Name;
  /** In the first line of the log: `'event loop'`. */
  readonly title: string;
  /** Without a feature that observes requests, the server gets no listener. */
  readonly observes: 'process' | 'requests';
  /** It does nothing in an application without an HTTP server. */
  readonly needsServer?: true;
  /** It has a sink: records are written for it where the application has none as well. */
  readonly hasSink?: true;
  /** The application's own work, which goes on with `enabled: false`. */
  readonly isApplicationsOwn?: true;
  readonly option: Option<Options | null>;
  /** The feature itself: null where its option is off and nothing of it is needed. */
  readonly token: InjectionToken;
  /** The feature under its token, and the ports that it implements. */
  readonly providers: readonly Provider[];
  /** Its class that applications inject, whether or not it is on. */
  readonly service?: InjectionToken;
}

/** A collaborator that may be off, or deleted with its folder. */
export const optionalPort = (token: InjectionToken) => ({ token, optional: true });

/**
 * Nest's provider of a feature: `make` gets its resolved option (null: off), then what `inject` names.
 * It may load the feature's code with `import()`: an application in which the feature is off does not parse that code.
 */
export function provideFeature<T>(
  name: string,
  token: InjectionToken<T>,
  inject: FactoryProvider['inject'] & object,
  make: (...given: never[]) => T | null | Promise<T | null>,
): FactoryProvider {
  return {
    provide: token,
    inject: [FEATURE_OPTIONS, ...inject],
    useFactory: ({ resolved }: { resolved: Record<string, unknown> }, ...given: unknown[]) =>
      make(...([resolved[name], ...given] as never[])),
  };
}

/** Nest's provider of a port that a feature implements; null while the feature is off. */
export function providePort<F>(
  port: InjectionToken,
  feature: InjectionToken<F>,
  pick: (feature: F) => object | null = (given) => given as object,
): FactoryProvider {
  return { provide: port, inject: [feature], useFactory: (given: F | null) => (given === null ? null : pick(given)) };
}
