import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, inject, it } from 'vitest';
import { either } from '../../fixtures/app.js';

async function run(adapter: string, promises = 'none'): Promise<unknown> {
  const at = (file: string): string => resolve(inject('compiledFixtures'), file);
  const parameters = ['--import', at('foreign-promise.js'), at('promises.process.js'), adapter];
  const env = { ...process.env, PROMISES: promises };
  const { stdout } = await promisify(execFile)(process.execPath, parameters, { env });
  return JSON.parse(stdout.trim().split('\n').at(-1)!);
}

const options = { timeout: 180_000 };
describe.each(either('fastify'))('an application on %s that has replaced the global Promise', options, (adapter) => {
  it('by that of bluebird or zone.js works as without', async () => {
    const expected = await run(adapter);
    expect(expected).toMatchObject({
      ran: expect.arrayContaining(['receipt 7', 'scoped 7', 'scoped 8', 'function 7', 'of the last one']),
    });
    expect(await run(adapter, 'bluebird')).toEqual(expected);
    expect(await run(adapter, 'zone.js')).toEqual(expected);
  });
});
