import type { LoadResult } from './open-loop.js';
import { printable } from './quantity.js';
import type { Traffic } from './traffic.js';

/** What was left out of a recording. */
export function* leftOut({ notAllowed }: Traffic): Generator<string> {
  if (notAllowed.size === 0) return;
  const count = [...notAllowed.values()].reduce((sum, each) => sum + each, 0);
  const names = [...notAllowed.keys()].slice(0, 3).map((name) => `--allow '${printable(name)}'`);
  yield `${count} requests are left out, since they may change data. If they may be sent: ${names.join(' ')}`;
}

/** Many answers have another status than they had when they were recorded: then it is not the same load. */
export function* otherAnswers({ otherStatus, sent }: Pick<LoadResult, 'otherStatus' | 'sent'>): Generator<string> {
  const [most] = [...otherStatus].toSorted(([, a], [, b]) => b - a);
  const count = [...otherStatus.values()].reduce((sum, each) => sum + each, 0);
  if (most === undefined || count < sent / 20) return;
  yield `${count} of ${sent} answers have another status than was recorded, most ${most[0]}. Is a header missing that was redacted? --header 'authorization: …'`;
}
