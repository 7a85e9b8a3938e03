import { execFile } from 'node:child_process';
import { createHook } from 'node:async_hooks';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { promisesAreHooked } from '../../../src/event-loop/promise-hooks.js';
import { nodeBinaries } from '../../fixtures/node-versions.js';

const compiled = new URL('../../../build/src/event-loop/promise-hooks.js', import.meta.url).href;
const script = `
  import { AsyncLocalStorage } from 'node:async_hooks';
  const { promisesAreHooked } = await import('${compiled}');
  const before = await promisesAreHooked();
  const inTimer = await new Promise((resolve) => setTimeout(() => resolve(promisesAreHooked()), 1));
  new AsyncLocalStorage().run(1, () => {});
  console.log(JSON.stringify({ before, inTimer, withStore: await promisesAreHooked() }));
`;

it('promises are hooked while a hook is enabled', async () => {
  const hook = createHook({ init() {} }).enable();
  expect(await promisesAreHooked()).toBe(true);
  hook.disable();
});

it.each(nodeBinaries())('and otherwise by a context store only before Node 24: $name', async ({ execPath, major }) => {
  const { stdout } = await promisify(execFile)(execPath, ['--input-type=module', '-e', script]);
  expect(JSON.parse(stdout)).toEqual({ before: false, inTimer: false, withStore: major < 24 });
});
