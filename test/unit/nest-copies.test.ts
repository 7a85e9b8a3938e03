import 'reflect-metadata';
import { createRequire } from 'node:module';
import { Module } from '@nestjs/common';
import { expect, it } from 'vitest';
import { PerfModule } from '../../src/index.js';

/** Another copy than the one that the library imports here. */
const { NestFactory } = createRequire(new URL('../nest11/package.json', import.meta.url))(
  '@nestjs/core',
) as typeof import('@nestjs/core');

@Module({ imports: [PerfModule.forRoot()] })
class AppModule {}
@Module({ imports: [PerfModule.forRootAsync({ useFactory: () => ({}) })] })
class AsyncModule {}

it.each([AppModule, AsyncModule])(
  'an application that runs on another copy of Nest is told what to do: %o',
  async (root) => {
    const boot = NestFactory.createApplicationContext(root, { logger: false, abortOnError: false });
    await expect(boot).rejects.toMatchObject({
      code: 'PERF_ERR_NEST_COPIES',
      message: expect.stringContaining('npm ls @nestjs/core'),
    });
  },
);
