import type { ModulesContainer } from '@nestjs/core';
import { offloadedOn } from '../core/offload-thread.js';
import { ON_WORKER_EVENT_METADATA, PROCESSOR_METADATA } from '../http/nest-metadata.js';
import { methodsOf, prototypeOf } from '../http/prototypes.js';
import { isTakenFromClass } from '../http/route-handler.js';
import { runningFrames, withoutProbe, type Frame } from './frame.js';

/** Nest calls these with the request, its context or a socket, which cannot travel to a worker. */
const OF_REQUESTS: ReadonlySet<string> = new Set([
  'use',
  'canActivate',
  'intercept',
  'transform',
  'catch',
  'afterInit',
  'handleConnection',
  'handleDisconnect',
]);

/** The methods of an application that could run in worker threads: those of its providers, where `@Offload()` may stand. */
export class ProviderMethods {
  /** Looked up at the first block: an application that never blocks pays nothing. */
  private names: ReadonlySet<string> | null = null;

  constructor(private readonly modules: ModulesContainer) {}

  /** The outermost call of such a method that was running, `'Reports.render'`: what it does goes along. Null: there is none. */
  runningIn(frames: readonly Frame[], isUsers: (frame: Frame) => boolean): string | null {
    this.names ??= new Set(namesOf(this.modules));
    let found: string | null = null;
    for (const frame of runningFrames(withoutProbe(frames))) {
      // Outside of the route function there are middleware and the framework.
      if (frame.name?.startsWith('perf:') === true) break;
      const name = `${frame.typeName}.${frame.name}`;
      if (this.names.has(name) && isUsers(frame)) found = name;
    }
    return found;
  }
}

function* namesOf(modules: ModulesContainer): Generator<string> {
  for (const { providers } of modules.values()) {
    for (const wrapper of providers.values()) {
      if (wrapper.isTransient || !wrapper.isDependencyTreeStatic()) continue;
      const prototype = prototypeOf(wrapper);
      if (prototype === null) continue;
      const offloaded = new Set(offloadedOn(prototype).map(([name]) => name));
      for (const [name, method] of methodsOf(prototype)) {
        if (OF_REQUESTS.has(name) || isTakenFromClass(method) || hearsOfJobs(prototype, name, method)) continue;
        if (!isAsync(prototype, name, method) || offloaded.has(name)) continue;
        yield `${prototype.constructor.name}.${name}`;
      }
    }
  }
}

/** The class that works a queue of BullMQ, and its methods that hear of jobs: a job cannot travel either. */
const hearsOfJobs = (prototype: object, name: string, method: object): boolean =>
  Reflect.hasMetadata(ON_WORKER_EVENT_METADATA, method) ||
  (name === 'process' && Reflect.hasMetadata(PROCESSOR_METADATA, prototype.constructor));

/** `@Offload()` would make a promise of what another returns. Of a function that a decorator has put there the compiler's type tells. */
const isAsync = (prototype: object, name: string, method: { [Symbol.toStringTag]?: string }): boolean =>
  method[Symbol.toStringTag] === 'AsyncFunction' ||
  Reflect.getMetadata('design:returntype', prototype, name) === Promise;
