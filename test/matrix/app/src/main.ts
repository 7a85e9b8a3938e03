// One cell of the compatibility matrix. Usage: node dist/main.js '{"scope":"alone","adapter":"fastify","redisPort":6379}'
// Prints a line of JSON for each check, and must end by itself.
import 'reflect-metadata';
import { alone, zeroConfiguration } from './alone.js';
import { beside } from './beside.js';
import { check } from './check.js';
import type { Adapter } from './server.js';

const { scope, adapter, redisPort } = JSON.parse(process.argv[2]!) as {
  scope: 'alone' | 'beside';
  adapter: Adapter;
  redisPort: number;
};

async function main(): Promise<void> {
  if (scope === 'beside') return beside(adapter);
  await check('zero configuration', () => zeroConfiguration(adapter));
  await alone(adapter, redisPort);
}

void main();
