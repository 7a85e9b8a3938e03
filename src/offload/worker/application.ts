import { ConsoleLogger, type INestApplicationContext } from '@nestjs/common';
import { ModulesContainer, NestFactory } from '@nestjs/core';
import { offloadModule } from '../../core/offload-thread.js';
import { logLevels } from '../log-levels.js';
import { offloadError } from '../offload.errors.js';
import { offloadedMethods, type OffloadedMethod } from '../offloaded-methods.js';
import { loadExports, moduleIn } from './load.js';

/** The Nest application of one worker. */
export class WorkerApplication {
  private constructor(
    private readonly context: INestApplicationContext,
    private readonly methods: ReadonlyMap<string, OffloadedMethod>,
    private readonly moduleName: string,
  ) {}

  static async boot(load: (href: string) => Promise<unknown>): Promise<WorkerApplication> {
    const file = offloadModule();
    if (file === null) throw offloadError('This program runs in workers of offload() alone.');
    const module = moduleIn(await loadExports(new URL(file), load), file);
    // The main thread has logged Nest's start already.
    const logger = new ConsoleLogger({ logLevels: ['warn'] });
    const context = await NestFactory.createApplicationContext(module, { logger, abortOnError: false });
    logger.setLogLevels(logLevels());
    const name = 'module' in module ? module.module.name : module.name;
    return new WorkerApplication(context, offloadedMethods(context.get(ModulesContainer, { strict: false })), name);
  }

  /** @throws PERF_ERR_OFFLOAD for a method that it does not have, and errors of the method */
  call(name: string, parameters: unknown[]): unknown {
    const found = this.methods.get(name);
    if (found === undefined) {
      const provider = name.slice(0, name.lastIndexOf('.'));
      throw offloadError(
        `No worker has "${name}". Add ${provider} to the providers of "${this.moduleName}", or keep class names ` +
          'where a bundler has renamed it (`keepNames` of esbuild).',
      );
    }
    const { instance, methodName } = found;
    return (Reflect.get(instance, methodName) as (...given: unknown[]) => unknown).apply(instance, parameters);
  }

  close(): Promise<void> {
    return this.context.close();
  }
}
