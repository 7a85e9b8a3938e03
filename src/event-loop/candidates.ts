import type { RequestState } from '../core/request-state.js';
import { beginsInRequest, isBareTimer, type Look } from './frame.js';
import { progressOf, type Phase, type Progress } from './interrupt/naming.js';

const PHASES = ['route', 'handler', 'open', 'after', 'done'] as const;

/** The phase that a request was in when there had been `changes`, and which of them had brought it there. */
export function phaseAt(progress: Progress | null, changes: number): { phase: Phase; enteredBy: number } {
  let [phase, enteredBy]: [Phase, number] = ['before', 0];
  if (progress === null) return { phase, enteredBy };
  for (const name of PHASES) {
    const change = progress[name];
    if (change > enteredBy && change <= changes) [phase, enteredBy] = [name, change];
  }
  return { phase, enteredBy };
}

export interface Candidate<S> {
  readonly state: S;
  readonly phase: Phase;
  /** The greater, the later it entered its phase. */
  readonly enteredBy: number;
  /** It entered its phase after the loop had last turned: in the block itself. */
  readonly inBlock: boolean;
}

/** A request in one of these may run where no stack shows it. */
const HIDDEN: ReadonlySet<Phase> = new Set(['before', 'route', 'open', 'after']);

/**
 * Guesses who ran where the stack shows no request: first those whose code no stack can show, then those that wait in their
 * handler, then those that are done. Of several the first to get on after the block, since whoever ran goes on before others get
 * their turn; else the last to have entered its phase, where that was in the block. Null: nobody is likelier than others.
 */
export function likeliest<S>(
  candidates: readonly Candidate<S>[],
  inRequestEvent: boolean,
  firstOn: S | null = null,
): S | null {
  // In the server's own event only the newest request can run, and no route function does: that would be known.
  const from = inRequestEvent ? candidates.filter(({ phase, inBlock }) => phase === 'before' && inBlock) : candidates;
  const groups = [
    from.filter(({ phase }) => HIDDEN.has(phase)),
    from.filter(({ phase }) => phase === 'handler'),
    from.filter(({ phase }) => phase === 'done'),
  ];
  const [likely = []] = groups.filter((group) => group.length > 0);
  const first = likely.find(({ state }) => state === firstOn) ?? likely[0];
  if (first === undefined || likely.length === 1 || first.state === firstOn) return first?.state ?? null;
  const newest = likely.reduce((a, b) => (b.enteredBy > a.enteredBy ? b : a));
  if (HIDDEN.has(first.phase) && newest.inBlock) return newest.state;
  return from.find(({ state }) => state === firstOn)?.state ?? null;
}

/** How long before it a request may have begun that is in the block: a beat is told only so often. */
const BEAT_MS = 1;

/** The only request in flight, if the block began with it. */
export function aloneIn(inFlight: readonly RequestState[], blockStartMs: number): RequestState | null {
  const [only] = inFlight;
  return inFlight.length === 1 && only!.startedMs >= blockStartMs - BEAT_MS ? only! : null;
}

const isInFlight = ({ startedMs, endedMs }: RequestState, atMs: number): boolean =>
  startedMs <= atMs && (endedMs === 0 || endedMs >= atMs);

/** Whether neither the request of a look nor another in flight had come to its handler: they may share a queue, or a batch. */
export const sharesWork = (
  { state: own, source, servedMs, changes }: Look<RequestState>,
  inFlight: readonly RequestState[],
): boolean =>
  source === 'store' &&
  inFlight.some(
    (state) => state !== own && isInFlight(state, servedMs) && isEarly(phaseAt(progressOf(state), changes)),
  );

const isEarly = ({ phase }: { readonly phase: Phase }): boolean => phase === 'before' || phase === 'route';

export function suspectAt(
  look: Look<RequestState>,
  inFlight: readonly RequestState[],
  blockStartMs: number,
  firstOn: RequestState | null,
): RequestState | null {
  if (isBareTimer(look.frames)) return null;
  const candidates: Candidate<RequestState>[] = [];
  for (const state of inFlight) {
    if (!isInFlight(state, look.servedMs)) continue;
    const { phase, enteredBy } = phaseAt(progressOf(state), look.changes);
    // The store, where it is on, knows every request that has come to its route function.
    if (look.unknown === 'background' && phase !== 'before') continue;
    // One that no route function has told of is ordered by its start, behind those that changed in the block.
    const begun = phase === 'before' && state.startedMs >= blockStartMs - BEAT_MS;
    const inBlock = begun || enteredBy > look.changesBefore;
    candidates.push({ state, phase, enteredBy: begun ? look.changesBefore + 0.5 : enteredBy, inBlock });
  }
  return likeliest(candidates, beginsInRequest(look.frames), firstOn);
}
