import { executionAsyncId } from 'node:async_hooks';

/**
 * Whether somebody in this process hears of each promise: `async_hooks`, and before Node 24 every context store. Node gives
 * promises ids of their own only then; elsewhere what follows an `await` runs outside any resource, with id 0.
 * Hooks of `v8.promiseHooks` cannot be seen this way.
 */
export async function promisesAreHooked(): Promise<boolean> {
  await Promise.resolve();
  return executionAsyncId() !== 0;
}
