import { ConsoleLogger, type LogLevel } from '@nestjs/common';
import { ModulesContainer, NestFactory } from '@nestjs/core';
import { offloadThread } from '../../core/offload-thread.js';
import { loadExports, moduleIn, type ImportFile } from '../load-file.js';
import { offloadError } from '../offload.errors.js';
import { offloadedMethods } from '../offloaded-methods.js';

/** Calls a method by its name: `'Reports.render'`. */
export type CallMethod = (name: string, parameters: unknown[]) => unknown;

/** Starts the Nest application of this worker, and returns what calls its methods. */
export async function startApplication(file: string, importFile: ImportFile): Promise<CallMethod> {
  const module = moduleIn(await loadExports(new URL(file), importFile), file);
  // The main thread has logged Nest's start already.
  const logger = new ConsoleLogger({ logLevels: ['warn'] });
  const context = await NestFactory.createApplicationContext(module, { logger, abortOnError: false });
  logger.setLogLevels([...offloadThread()!.logLevels] as LogLevel[]);
  const methods = offloadedMethods(context.get(ModulesContainer, { strict: false }));
  const moduleName = 'module' in module ? module.module.name : module.name;
  return (name, parameters) => {
    const found = methods.get(name);
    if (found === undefined) throw unknownMethod(name, moduleName);
    const { instance, methodName } = found;
    return (Reflect.get(instance, methodName) as (...given: unknown[]) => unknown).apply(instance, parameters);
  };
}

function unknownMethod(name: string, moduleName: string): Error {
  const provider = name.slice(0, name.lastIndexOf('.'));
  return offloadError(
    `No worker has "${name}". Add ${provider} to the providers of "${moduleName}", or keep class names ` +
      'where a bundler has renamed it (`keepNames` of esbuild).',
  );
}
