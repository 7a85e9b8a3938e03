import type { Type } from '@nestjs/common';
import { ContextIdFactory, ModuleRef, type ModulesContainer } from '@nestjs/core';
import { describe } from '../../core/option.js';
import { PerfError } from '../../core/perf.error.js';
import type { DeferredBatchWork, DeferredWork } from '../deferred-work.js';
import type { WorkKind } from '../durable/durable-store.js';
import type { WorkOptions } from '../work-options.js';
import { readDurableWork } from './durable-work.decorator.js';

type Module = ModulesContainer extends Map<string, infer M> ? M : never;
type Wrapper = Module['providers'] extends Map<unknown, infer W> ? W : never;

export type AnyWork = DeferredWork | DeferredBatchWork;

/** Whether a function is a class of work, rather than a task. A class's `prototype` cannot be replaced (ECMA-262, ClassDefinitionEvaluation). */
export function isClass(work: object): work is Type<AnyWork> {
  const { prototype } = work as { prototype?: { run?: unknown; runBatch?: unknown } };
  const isWork = [prototype?.run, prototype?.runBatch].some((method) => typeof method === 'function');
  return isWork || Object.getOwnPropertyDescriptor(work, 'prototype')?.writable === false;
}

/** Returns the instance of a class of work, for one request or one job; a promise only for a request-scoped provider. */
export type ProvideWork = (request: unknown) => AnyWork | Promise<AnyWork>;

export interface ProvidedWork {
  readonly kind: WorkKind;
  readonly provide: ProvideWork;
  /** The name under which its jobs travel; null without `@DurableWork`. */
  readonly durableName: string | null;
}

/** A class of work and how it is to run. */
export interface ClassWork extends WorkOptions, ProvidedWork {
  readonly name: string;
  /** Its name in errors, with its handler where it has one. */
  readonly label: string;
}

const noStoreError = (where: string, { name }: Type): PerfError =>
  new PerfError(
    'PERF_ERR_STORE',
    `"${where}" defers to ${name} with \`durable: true\`, but \`defer.store\` is not set. Pass \`defer: { store: bullmqStore({ connection }) }\` from 'nestjs-perf/bullmq'.`,
  );

/** The classes of deferred work among the application's providers. */
export class WorkProviders {
  /** Classes with `@DurableWork`, by the names that jobs carry. */
  private declared = new Map<string, ProvidedWork & { readonly type: Type<AnyWork> }>();
  private readonly provided = new Map<Type<AnyWork>, ProvidedWork>();
  private scannedModules = 0;

  constructor(
    private readonly modules: ModulesContainer,
    private readonly hasStore: boolean,
  ) {}

  /** Finds the classes that jobs may run. @throws PERF_ERR_DEFER_WORK for two classes of one name */
  scan(): void {
    this.scannedModules = this.modules.size;
    const declared: typeof this.declared = new Map();
    for (const { providers } of this.modules.values()) {
      for (const [token, wrapper] of providers) {
        const kind = typeof token === 'function' ? findKind(wrapper) : null;
        const type = token as Type<AnyWork>;
        const durable = kind === null ? null : readDurableWork(type);
        if (durable === null) continue;
        const known = declared.get(durable.name)?.type ?? type;
        if (known !== type) throw sameName(durable.name, known, type);
        declared.set(durable.name, { type, ...toProvided(type, wrapper, kind!) });
      }
    }
    this.declared = declared;
  }

  /** Queues that classes name in `@DurableWork()`: this process works them off. */
  get queues(): string[] {
    return [...this.declared.values()].flatMap(({ type }) => readDurableWork(type)?.options.queue ?? []);
  }

  /**
   * A class of work as `where`, a handler of the controller or a method of `Deferrer`, uses it: the provider that the controller's module
   * sees, its own, an imported one, else any. @throws PERF_ERR_STORE, PERF_ERR_DEFER_WORK
   */
  plan(type: Type<AnyWork>, options: WorkOptions, where: string, controller: Type | null): ClassWork {
    if (options.durable && !this.hasStore) throw noStoreError(where, type);
    const known = controller === null ? this.provided.get(type) : undefined;
    const provided = known ?? this.findProvider(type, controller, where);
    if (controller === null) this.provided.set(type, provided);
    const name = options.name ?? provided.durableName ?? type.name;
    const label = controller === null ? name : `${name} of "${where}"`;
    if (!options.durable || provided.durableName !== null) return { ...options, ...provided, name, label };
    throw new PerfError(
      'PERF_ERR_DEFER_WORK',
      `"${where}" defers durable work to ${type.name}, which workers do not run: its jobs have no name that stays. ` +
        `Add the line \`@DurableWork('${suggestName(type)}')\` above \`class ${type.name}\`, ` +
        "with `import { DurableWork } from 'nestjs-perf'`.",
    );
  }

  private findProvider(type: Type<AnyWork>, controller: Type | null, usedBy: string): ProvidedWork {
    const wrapper = this.findWrapper(type, controller);
    const where = controller === null ? 'a module' : `the module that holds ${controller.name}`;
    let why = `but no module provides ${type.name}. Add it to the \`providers\` of ${where}.`;
    const kind = wrapper && findKind(wrapper);
    if (wrapper !== null && kind === null) why = 'which has no method `run`. Implement `DeferredWork`.';
    if (wrapper !== null && kind !== null) {
      if (kind === 'one' || isStatic(wrapper)) return toProvided(type, wrapper, kind);
      why = 'whose `runBatch` serves many requests, but it is request-scoped or transient. Give it the default scope.';
    }
    throw new PerfError('PERF_ERR_DEFER_WORK', `"${usedBy}" defers to ${type.name}, ${why}`);
  }

  /** The class of a job by its name, in a process that may have no controller at all; null where no module provides it. */
  lookUp(name: string): ProvidedWork | null {
    // A module may be loaded lazily, long after the boot.
    if (!this.declared.has(name) && this.scannedModules !== this.modules.size) this.scan();
    return this.declared.get(name) ?? null;
  }

  private findWrapper(type: Type<AnyWork>, controller: Type | null): Wrapper | null {
    const all = [...this.modules.values()];
    const home = controller === null ? [] : all.filter(({ controllers }) => controllers.has(controller));
    const imported = home.flatMap(({ imports }) => [...imports]).filter((module) => module.exports.has(type));
    return [...home, ...imported, ...all].find(({ providers }) => providers.has(type))?.providers.get(type) ?? null;
  }
}

const sameName = (name: string, one: Type, other: Type): PerfError =>
  new PerfError(
    'PERF_ERR_DEFER_WORK',
    `two classes of durable work have the name ${describe(name)}, ${one.name} and ${other.name}: a job carries only that. ` +
      'Give one of them another in `@DurableWork()`.',
  );

/** `SendReceipt` becomes `send-receipt`. */
const suggestName = ({ name }: Type): string => name.replaceAll(/(?<=[a-z\d])(?=[A-Z])/g, '-').toLowerCase();

function toProvided(type: Type<AnyWork>, wrapper: Wrapper, kind: WorkKind): ProvidedWork {
  return { kind, provide: provideFrom(wrapper), durableName: readDurableWork(type)?.name ?? null };
}

function provideFrom(wrapper: Wrapper): ProvideWork {
  if (isStatic(wrapper)) return () => wrapper.instance as AnyWork;
  const moduleRef = wrapper.host?.providers.get(ModuleRef)?.instance as ModuleRef;
  const token = wrapper.token as Type<AnyWork>;
  return (request) => {
    const contextId = isRequest(request) ? ContextIdFactory.getByRequest(request) : ContextIdFactory.create();
    if (isRequest(request)) moduleRef.registerRequestByContextId(request, contextId);
    return moduleRef.resolve(token, contextId, { strict: true });
  };
}

const isRequest = (request: unknown): request is object => typeof request === 'object' && request !== null;

const isStatic = (wrapper: Wrapper): boolean => wrapper.isDependencyTreeStatic() && !wrapper.isTransient;

function findKind({ metatype, instance }: Wrapper): WorkKind | null {
  const places = [instance, (metatype as Type | null)?.prototype] as (Partial<Record<string, unknown>> | undefined)[];
  const has = (method: string): boolean => places.some((at) => typeof at?.[method] === 'function');
  if (has('runBatch')) return 'batch';
  return has('run') ? 'one' : null;
}
