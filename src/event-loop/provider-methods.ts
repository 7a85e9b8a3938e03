import type { ModulesContainer } from '@nestjs/core';
import { listMethods, findPrototype, listWrappers } from '../request/prototypes.js';
import type { Frame } from './sample.js';

/** The methods of the classes that Nest makes: controllers, providers, guards, cron jobs, consumers. */
export class ProviderMethods {
  /** Made at the first block: an application that never blocks pays nothing. */
  private known: ReadonlySet<string> | null = null;

  constructor(private readonly modules: ModulesContainer) {}

  /** All of them, as `'ReportsService.render'`. */
  names(): ReadonlySet<string> {
    return (this.known ??= listProviderMethods(this.modules));
  }

  /** The innermost method of such a class in a stack; null when there is none. */
  findIn(frames: readonly Frame[], isApplications: (frame: Frame) => boolean): string | null {
    const names = this.names();
    const found = frames.find((frame) => names.has(formatMethod(frame)) && isApplications(frame));
    return found === undefined ? null : formatMethod(found);
  }
}

const formatMethod = ({ typeName, name }: Frame): string => `${typeName}.${name}`;

function listProviderMethods(modules: ModulesContainer): Set<string> {
  const names = new Set<string>();
  const middlewares = [...modules.values()].flatMap((module) => [...module.middlewares.values()]);
  for (const wrapper of [...listWrappers(modules), ...middlewares]) {
    const prototype = findPrototype(wrapper);
    const type: unknown = prototype?.constructor?.name;
    if (prototype === null || typeof type !== 'string') continue;
    for (const [name] of listMethods(prototype)) names.add(`${type}.${name}`);
  }
  return names;
}
