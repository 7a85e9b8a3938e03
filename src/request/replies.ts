import type { AbstractHttpAdapter } from '@nestjs/core';
import { putOn } from '../core/stand-in.js';

/** Hears what handlers answer, before it is made JSON, until the function that it returns is called. */
export function watchReplies(
  adapter: AbstractHttpAdapter,
  hear: (response: unknown, body: unknown, status: unknown) => void,
): () => void {
  // Called as the adapter's own, as Nest does.
  const reply = Reflect.get(adapter, 'reply') as (...given: unknown[]) => unknown;
  const hearing = function (this: AbstractHttpAdapter, ...given: unknown[]): unknown {
    hear(given[0], given[1], given[2]);
    return reply.apply(this, given);
  };
  return putOn(adapter, 'reply', hearing)!;
}
