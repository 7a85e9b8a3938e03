import type { Type } from '@nestjs/common';
import { ContextIdFactory, ModuleRef, type ModulesContainer } from '@nestjs/core';
import { PerfError } from '../../core/perf.error.js';
import type { DeferredWork } from '../deferred-work.js';

type Module = ModulesContainer extends Map<string, infer M> ? M : never;
type Wrapper = Module['providers'] extends Map<unknown, infer W> ? W : never;

/** Finds a work class's instance, for one request or for one job; a promise only for a request-scoped provider. */
export type ProvideWork = (request: unknown) => DeferredWork | Promise<DeferredWork>;

/** The classes of deferred work among the application's providers. */
export class WorkProviders {
  private readonly byName = new Map<string, ProvideWork>();

  constructor(private readonly modules: ModulesContainer) {}

  /**
   * The provider of a class as a controller's module sees it: its own, an imported one, else any.
   * @throws PERF_ERR_DEFER_WORK naming the handler
   */
  provide(type: Type<DeferredWork>, controller: Type, handler: string): ProvideWork {
    const wrapper = this.wrapperOf(type, controller);
    if (wrapper === null) {
      throw new PerfError(
        'PERF_ERR_DEFER_WORK',
        `"${handler}" defers to ${type.name}, but no module provides ${type.name}. ` +
          `Add it to the \`providers\` of the module that holds ${controller.name}.`,
      );
    }
    const { instance } = wrapper as { instance?: Partial<DeferredWork> };
    const runs = typeof instance?.run === 'function' || typeof prototypeOf(wrapper.metatype)?.run === 'function';
    if (!runs) {
      throw new PerfError(
        'PERF_ERR_DEFER_WORK',
        `"${handler}" defers to ${type.name}, which has no method \`run\`. Implement \`DeferredWork\`.`,
      );
    }
    return this.provideFrom(wrapper);
  }

  /**
   * Makes a class findable by its name, which is all that a durable job carries.
   * @throws PERF_ERR_DEFER_WORK when another class of that name is durable as well
   */
  nameForJobs(type: Type<DeferredWork>, provide: ProvideWork, handler: string): void {
    const token = this.durable.get(type.name);
    if (token !== undefined && token !== type) {
      throw new PerfError(
        'PERF_ERR_DEFER_WORK',
        `"${handler}" defers durable work to a class named ${type.name}, and so does another handler to another class. ` +
          'A job carries only the name: give one of them another.',
      );
    }
    this.durable.set(type.name, type);
    this.byName.set(type.name, provide);
  }

  private readonly durable = new Map<string, Type<DeferredWork>>();

  /**
   * The provider for a job, in a process that may have no controller at all.
   * @throws PERF_ERR_DEFER_WORK
   */
  find(name: string): DeferredWork | Promise<DeferredWork> {
    let provide = this.byName.get(name);
    if (provide === undefined) {
      provide = this.search(name);
      this.byName.set(name, provide);
    }
    return provide(undefined);
  }

  private search(name: string): ProvideWork {
    const found = new Map<unknown, Wrapper>();
    for (const module of this.modules.values()) {
      for (const [token, wrapper] of module.providers) {
        if (typeof token !== 'function' || token.name !== name) continue;
        const { instance } = wrapper as { instance?: Partial<DeferredWork> };
        if (typeof (instance ?? prototypeOf(wrapper.metatype))?.run === 'function') found.set(token, wrapper);
      }
    }
    const [first, ...others] = [...found.values()];
    if (first !== undefined && others.length === 0) return this.provideFrom(first);
    throw new PerfError(
      'PERF_ERR_DEFER_WORK',
      first === undefined
        ? `a durable job needs ${name}, but no module of this application provides a class of that name with a \`run\` method. Add it to the \`providers\` of a module.`
        : `a durable job needs ${name}, but ${found.size} different classes of that name are provided. Rename one of them.`,
    );
  }

  private wrapperOf(type: Type<DeferredWork>, controller: Type): Wrapper | null {
    const home = [...this.modules.values()].filter((module) => module.controllers.has(controller));
    const imported = home.flatMap((module) => [...module.imports]).filter((module) => module.exports.has(type));
    for (const module of [...home, ...imported, ...this.modules.values()]) {
      const wrapper = module.providers.get(type);
      if (wrapper !== undefined) return wrapper;
    }
    return null;
  }

  private provideFrom(wrapper: Wrapper): ProvideWork {
    if (wrapper.isDependencyTreeStatic() && !wrapper.isTransient) return () => wrapper.instance as DeferredWork;
    const moduleRef = wrapper.host?.providers.get(ModuleRef)?.instance as ModuleRef;
    const token = wrapper.token as Type<DeferredWork>;
    return (request) => {
      const contextId = isRequest(request) ? ContextIdFactory.getByRequest(request) : ContextIdFactory.create();
      if (isRequest(request)) moduleRef.registerRequestByContextId(request, contextId);
      return moduleRef.resolve(token, contextId, { strict: true });
    };
  }
}

const isRequest = (request: unknown): request is object => typeof request === 'object' && request !== null;

function prototypeOf(metatype: unknown): { run?: unknown } | undefined {
  return (metatype as { prototype?: { run?: unknown } } | null | undefined)?.prototype;
}
