import type { Type } from '@nestjs/common';
import { ContextIdFactory, ModuleRef, type ModulesContainer } from '@nestjs/core';
import { isMinified } from '../../core/class-name.js';
import { PerfError } from '../../core/perf.error.js';
import type { DeferredBatchWork, DeferredWork } from '../deferred-work.js';
import type { WorkKind } from '../durable/durable-store.js';

type Module = ModulesContainer extends Map<string, infer M> ? M : never;
type Wrapper = Module['providers'] extends Map<unknown, infer W> ? W : never;

export type AnyWork = DeferredWork | DeferredBatchWork;

/** Whether a function is a class of work, rather than a task. */
export function isClass(work: object): work is Type<AnyWork> {
  const { prototype } = work as { prototype?: { run?: unknown; runBatch?: unknown } };
  const isWork = [prototype?.run, prototype?.runBatch].some((method) => typeof method === 'function');
  return isWork || /^class\b/.test(Function.prototype.toString.call(work));
}

/** Finds a work class's instance, for one request or for one job; a promise only for a request-scoped provider. */
export type ProvideWork = (request: unknown) => AnyWork | Promise<AnyWork>;

export interface ProvidedWork {
  readonly kind: WorkKind;
  readonly provide: ProvideWork;
}

/** The classes of deferred work among the application's providers. */
export class WorkProviders {
  /** Those that jobs ask for, which carry only the name. */
  private readonly byName = new Map<string, ProvidedWork & { readonly type: unknown }>();

  constructor(
    private readonly modules: ModulesContainer,
    private readonly say: (cause: string, message: string) => void,
  ) {}

  /**
   * The provider of a class as a controller's module sees it: its own, an imported one, else any. `durable`: jobs may ask for it.
   * @throws PERF_ERR_DEFER_WORK naming the handler
   */
  provide(type: Type<AnyWork>, controller: Type | null, place: string, durable: boolean): ProvidedWork {
    const wrapper = this.wrapperOf(type, controller);
    const refused = (why: string): PerfError =>
      new PerfError('PERF_ERR_DEFER_WORK', `"${place}" defers to ${type.name}, ${why}`);
    if (wrapper === null) {
      const where = controller === null ? 'a module' : `the module that holds ${controller.name}`;
      throw refused(`but no module provides ${type.name}. Add it to the \`providers\` of ${where}.`);
    }
    const kind = kindOf(wrapper);
    if (kind === null) throw refused('which has no method `run`. Implement `DeferredWork`.');
    if (kind === 'batch' && !isStatic(wrapper)) {
      throw refused(
        'whose `runBatch` serves many requests, but it is request-scoped or transient. Give it the default scope.',
      );
    }
    const provided = { type, kind, provide: provideFrom(wrapper) };
    const known = this.byName.get(type.name);
    if (durable && known !== undefined && known.type !== type) {
      throw new PerfError(
        'PERF_ERR_DEFER_WORK',
        `"${place}" defers durable work to a class named ${type.name}, and so does other code to another class. ` +
          'A job carries only the name: give one of them another.',
      );
    }
    if (durable) this.byName.set(type.name, provided);
    if (durable && isMinified(type)) this.warnOfMinified(type.name);
    return provided;
  }

  private warnOfMinified(name: string): void {
    const cause = `durable work of a class named "${name}" carries a name that a minifier has made`;
    const danger = 'after the next build its jobs may run in another class';
    this.say(cause, `${cause}: ${danger}. Keep class names: \`keepNames\` of esbuild, \`keep_classnames\` of terser.`);
  }

  /** The provider for a job, in a process that may have no controller at all. @throws PERF_ERR_DEFER_WORK */
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
    const known = this.byName.get(name);
    if (known !== undefined) return known;
    const found = new Map<unknown, Wrapper>();
    for (const { providers } of this.modules.values()) {
      for (const [token, wrapper] of providers) {
        if (typeof token === 'function' && token.name === name && kindOf(wrapper) !== null) found.set(token, wrapper);
      }
    }
    const [[type, wrapper] = []] = found;
    if (wrapper === undefined || found.size > 1) {
      const why =
        wrapper === undefined
          ? 'no module of this application provides a class of that name with a `run` method. Add it to the `providers` of a module.'
          : `${found.size} different classes of that name are provided. Rename one of them.`;
      throw new PerfError('PERF_ERR_DEFER_WORK', `a durable job needs ${name}, but ${why}`);
    }
    const provided = { type, kind: kindOf(wrapper)!, provide: provideFrom(wrapper) };
    this.byName.set(name, provided);
    return provided;
  }

  private wrapperOf(type: Type<AnyWork>, controller: Type | null): Wrapper | null {
    const all = [...this.modules.values()];
    const home = controller === null ? [] : all.filter(({ controllers }) => controllers.has(controller));
    const imported = home.flatMap(({ imports }) => [...imports]).filter((module) => module.exports.has(type));
    return [...home, ...imported, ...all].find(({ providers }) => providers.has(type))?.providers.get(type) ?? null;
  }
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

function kindOf({ metatype, instance }: Wrapper): WorkKind | null {
  const places = [instance, (metatype as Type | null)?.prototype] as (Partial<Record<string, unknown>> | undefined)[];
  const has = (method: string): boolean => places.some((at) => typeof at?.[method] === 'function');
  if (has('runBatch')) return 'batch';
  return has('run') ? 'one' : null;
}
