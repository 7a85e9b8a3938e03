import { responsesOf } from './retry-after.js';

/** What a body is read from: a stream of Node, or one of the web. */
interface Body {
  readonly locked?: boolean;
  on?(event: 'error', listener: () => void): unknown;
  pipe?(): unknown;
  destroy?(): unknown;
  cancel?(): Promise<unknown>;
}

/**
 * Ends what an attempt has answered and nobody reads: its connection would wait for the garbage collector, one of Node's for good.
 * An answer is a stream itself, as of `http.get()` and got, or has one as `body` or `data`. Never throws.
 */
export function releaseAnswer(outcome: unknown): void {
  try {
    for (const answer of responsesOf(outcome)) {
      const { body, data } = answer as { body?: unknown; data?: unknown };
      for (const each of [answer, body, data]) if (typeof each === 'object' && each !== null) endUnread(each);
    }
  } catch {
    // A client's own getters. The next attempt is under way all the same.
  }
}

/** A row of an ORM has a `destroy()` too, which deletes it: a stream is told by `pipe()`. */
function endUnread(body: Body): void {
  if (typeof body.pipe === 'function' && typeof body.destroy === 'function') {
    // An undici stream that ends early says so as an error.
    body.on?.('error', () => {});
    body.destroy();
  } else if (body.locked === false && typeof body.cancel === 'function') void body.cancel().catch(() => {});
}
