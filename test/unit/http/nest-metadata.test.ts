import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import * as graphql from '@nestjs/graphql/dist/graphql.constants.js';
import 'reflect-metadata';
import { expect, it } from 'vitest';
import * as keys from '../../../src/http/nest-metadata.js';

it.each([
  ['12', '../../../package.json'],
  ['11', '../../nest11/package.json'],
])('the metadata keys are those of Nest %s', async (_, tree) => {
  const { resolve } = createRequire(new URL(tree, import.meta.url));
  const constantsOf = async (name: string) =>
    (await import(pathToFileURL(resolve(`${name}/constants`)).href)) as Record<string, unknown>;
  const packages = ['common', 'platform-fastify', 'microservices', 'websockets'];
  const ofPackages = await Promise.all(packages.map((name) => constantsOf(`@nestjs/${name}`)));
  const constants = Object.assign({ ...graphql }, ...ofPackages) as object;
  expect(Object.keys(keys).length).toBeGreaterThan(10);
  expect(constants).toMatchObject({ ...keys });
});
