import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import * as graphql from '@nestjs/graphql/dist/graphql.constants.js';
import 'reflect-metadata';
import { expect, it } from 'vitest';
import * as keys from '../../../src/request/nest-metadata.js';

it.each([
  ['12', '../../../package.json'],
  ['11', '../../nest11/package.json'],
])('the metadata keys are those of Nest %s', async (_, tree) => {
  const { resolve } = createRequire(new URL(tree, import.meta.url));
  const packages = ['common', 'platform-fastify', 'microservices', 'websockets'];
  const files = packages.map((name) => pathToFileURL(resolve(`@nestjs/${name}/constants`)));
  // Its package tells of no file but the first.
  files.push(new URL('bull.constants.js', pathToFileURL(resolve('@nestjs/bullmq'))));
  const ofPackages = await Promise.all(files.map(({ href }) => import(href)));
  const constants = Object.assign({ ...graphql }, ...ofPackages) as object;
  expect(Object.keys(keys).length).toBeGreaterThan(10);
  expect(constants).toMatchObject({ ...keys });
});
