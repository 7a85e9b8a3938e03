import type { Type } from '@nestjs/common';
import { ContextIdFactory, ModuleRef, type ModulesContainer } from '@nestjs/core';
import { PerfError } from '../../core/perf.error.js';
import type { DeferredBatchWork, DeferredWork } from '../deferred-work.js';
import type { WorkKind } from '../durable/durable-store.js';

type Module = ModulesContainer extends Map<string, infer M> ? M : never;
type Wrapper = Module['providers'] extends Map<unknown, infer W> ? W : never;

/** A class with `run` or `runBatch`. */
export type AnyWork = DeferredWork | DeferredBatchWork;

/** Whether a function is a class of work, rather than a task. */
export function isClass(work: object): work is Type<AnyWork> {
  const { prototype } = work as { prototype?: { run?: unknown; runBatch?: unknown } };
  const isWork = [prototype?.run, prototype?.runBatch].some((method) => typeof method === 'function');
  return isWork || /^class\b/.test(Function.prototype.toString.call(work));
}

/** Finds a work class's instance, for one request or for one job; a promise only for a request-scoped provider. */
export type ProvideWork = (request: unknown) => AnyWork | Promise<AnyWork>;

/** A class as a module provides it. */
export interface ProvidedWork {
  readonly kind: WorkKind;
  readonly provide: ProvideWork;
}

/** The classes of deferred work among the application's providers. */
export class WorkProviders {
  private readonly byName = new Map<string, ProvidedWork>();
  private readonly durable = new Map<string, Type<AnyWork>>();

  constructor(private readonly modules: ModulesContainer) {}

  /**
   * The provider of a class as a controller's module sees it: its own, an imported one, else any.
   * @throws PERF_ERR_DEFER_WORK naming the handler
   */
  provide(type: Type<AnyWork>, controller: Type | null, place: string): ProvidedWork {
    const wrapper = this.wrapperOf(type, controller);
    if (wrapper === null) {
      const where = controller === null ? 'a module' : `the module that holds ${controller.name}`;
      throw new PerfError(
        'PERF_ERR_DEFER_WORK',
        `"${place}" defers to ${type.name}, but no module provides ${type.name}. Add it to the \`providers\` of ${where}.`,
      );
    }
    const kind = kindOf(wrapper);
    if (kind === null) {
      throw new PerfError(
        'PERF_ERR_DEFER_WORK',
        `"${place}" defers to ${type.name}, which has no method \`run\`. Implement \`DeferredWork\`.`,
      );
    }
    if (kind === 'batch' && !isStatic(wrapper)) {
      throw new PerfError(
        'PERF_ERR_DEFER_WORK',
        `"${place}" defers to ${type.name}, whose \`runBatch\` serves many requests, but it is request-scoped or transient. Give it the default scope.`,
      );
    }
    return { kind, provide: this.provideFrom(wrapper) };
  }

  /**
   * Makes a class findable by its name, which is all that a durable job carries.
   * @throws PERF_ERR_DEFER_WORK when another class of that name is durable as well
   */
  nameForJobs(type: Type<AnyWork>, provided: ProvidedWork, place: string): void {
    const token = this.durable.get(type.name);
    if (token !== undefined && token !== type) {
      throw new PerfError(
        'PERF_ERR_DEFER_WORK',
        `"${place}" defers durable work to a class named ${type.name}, and so does other code to another class. ` +
          'A job carries only the name: give one of them another.',
      );
    }
    this.durable.set(type.name, type);
    this.byName.set(type.name, provided);
  }

  /**
   * The provider for a job, in a process that may have no controller at all.
   * @throws PERF_ERR_DEFER_WORK
   */
  find(name: string): AnyWork | Promise<AnyWork> {
    return this.lookUp(name).provide(undefined);
  }

  /** How a class runs, by its name; or why it cannot here. */
  kindOf(name: string): WorkKind | { readonly whyNot: string } {
    try {
      return this.lookUp(name).kind;
    } catch (error) {
      return { whyNot: (error as Error).message };
    }
  }

  private lookUp(name: string): ProvidedWork {
    let found = this.byName.get(name);
    if (found === undefined) {
      found = this.search(name);
      this.byName.set(name, found);
    }
    return found;
  }

  private search(name: string): ProvidedWork {
    const found = new Map<unknown, Wrapper>();
    for (const module of this.modules.values()) {
      for (const [token, wrapper] of module.providers) {
        if (typeof token === 'function' && token.name === name && kindOf(wrapper) !== null) found.set(token, wrapper);
      }
    }
    const [first, ...others] = [...found.values()];
    if (first !== undefined && others.length === 0) return { provide: this.provideFrom(first), kind: kindOf(first)! };
    throw new PerfError(
      'PERF_ERR_DEFER_WORK',
      first === undefined
        ? `a durable job needs ${name}, but no module of this application provides a class of that name with a \`run\` method. Add it to the \`providers\` of a module.`
        : `a durable job needs ${name}, but ${found.size} different classes of that name are provided. Rename one of them.`,
    );
  }

  private wrapperOf(type: Type<AnyWork>, controller: Type | null): Wrapper | null {
    const home = [...this.modules.values()].filter(
      (module) => controller !== null && module.controllers.has(controller),
    );
    const imported = home.flatMap((module) => [...module.imports]).filter((module) => module.exports.has(type));
    for (const module of [...home, ...imported, ...this.modules.values()]) {
      const wrapper = module.providers.get(type);
      if (wrapper !== undefined) return wrapper;
    }
    return null;
  }

  private provideFrom(wrapper: Wrapper): ProvideWork {
    if (isStatic(wrapper)) return () => wrapper.instance as AnyWork;
    const moduleRef = wrapper.host?.providers.get(ModuleRef)?.instance as ModuleRef;
    const token = wrapper.token as Type<AnyWork>;
    return (request) => {
      const contextId = isRequest(request) ? ContextIdFactory.getByRequest(request) : ContextIdFactory.create();
      if (isRequest(request)) moduleRef.registerRequestByContextId(request, contextId);
      return moduleRef.resolve(token, contextId, { strict: true });
    };
  }
}

const isRequest = (request: unknown): request is object => typeof request === 'object' && request !== null;

const isStatic = (wrapper: Wrapper): boolean => wrapper.isDependencyTreeStatic() && !wrapper.isTransient;

/** Null for a provider that is no work. */
function kindOf(wrapper: Wrapper): WorkKind | null {
  const { prototype } = (wrapper.metatype ?? {}) as { prototype?: Partial<DeferredWork & DeferredBatchWork> };
  const { instance } = wrapper as { instance?: Partial<DeferredWork & DeferredBatchWork> };
  const has = (method: 'run' | 'runBatch'): boolean =>
    [instance, prototype].some((at) => typeof at?.[method] === 'function');
  if (has('runBatch')) return 'batch';
  return has('run') ? 'one' : null;
}
