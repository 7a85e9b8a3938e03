import type { Judgement } from './judgement.js';
import { sum } from './counts.js';
import { printable } from './quantity.js';
import { notSendable, type Traffic } from './traffic.js';

/** What of a recording is not sent. */
export function* leftOut({ notAllowed, unsendable, endsBroken }: Traffic): Generator<string> {
  if (endsBroken) yield 'The last line is not whole and left out: the process ended while it recorded.';
  yield* notSendable(unsendable);
  if (notAllowed.size === 0) return;
  const names = [...notAllowed.keys()].slice(0, 3).map((name) => `--allow '${printable(name)}'`);
  yield `${sum(notAllowed.values())} requests are left out, since they may change data. If they may be sent: ${names.join(' ')}`;
}

/** Many answers have another status than the recording's, or than 200 where there is none: then it is not the load that was meant. */
export function* otherAnswers(
  { otherStatus, requests }: Pick<Judgement, 'otherStatus' | 'requests'>,
  isRecorded: boolean,
): Generator<string> {
  const [most] = Object.entries(otherStatus).toSorted(([, a], [, b]) => b - a);
  const count = sum(Object.values(otherStatus));
  if (most === undefined || count < requests / 20) return;
  const expected = isRecorded ? 'was recorded' : 'expected';
  const advice = isRecorded ? 'Is a header missing that was redacted?' : 'Is it the right URL, or is a header missing?';
  yield `${count} of ${requests} answers have another status than ${expected}, most ${most[0]}. ${advice} --header 'authorization: …'`;
}
