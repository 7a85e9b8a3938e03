import { epochMsOf } from '../core/clock.js';
import { entryOf } from '../core/entry-of.js';
import type { BlockRecord, RequestRef } from '../core/record.js';
import type { OncePerCause } from '../core/reporter.js';
import type { RequestState } from '../core/request-state.js';
import { methodLabel } from '../core/route.js';
import type { Classification } from './classify.js';
import { isUserFrame, withoutProbe, type Frame, type Look } from './frame.js';
import type { ProviderMethods } from './provider-methods.js';
import type { Block } from './loop-watch.js';
import { sentUrl } from '../core/safe-request.js';
import { replayOf, type ReplayRules } from './replay/curl.js';
import { redactUrl, type SecretNames } from '../core/redact.js';
import { SourceMaps, type Position } from './source-maps.js';

/** Requests that are named as delayed; each costs a few microseconds when the record is built. */
export const MAX_DELAYED = 200;
const MAX_STACK = 40;
const MAX_POSITIONS = 1_000;
/** Of a path with forward slashes, absolute or relative to the working directory. */
const IN_DEPENDENCY = /(?:^|\/)node_modules\//;

/** Reads what an application may have put on a request, a getter that throws among it. */
export class CarefulReader {
  constructor(private readonly report: OncePerCause) {}

  /** What `read` returns; `otherwise` where it throws, which is reported once for each `what`. */
  read<T>(what: string, read: () => T, otherwise: T): T {
    try {
      return read();
    } catch (error) {
      this.failed(`reading ${what} of a request`, error);
      return otherwise;
    }
  }

  /** Something failed while `doing`; the record that needs it goes on without. */
  readonly failed = (doing: string, error: unknown): void => {
    const cause = `${doing} for an event-loop block failed`;
    // The error is the application's own, and may hold what it worked on: only its kind is told.
    this.report.report(cause, `${cause} (${kindOf(error)}). What needs it is left out.`);
  };
}

function kindOf(error: unknown): string {
  try {
    const { name } = error as Error;
    return typeof name === 'string' ? name : typeof error;
  } catch {
    return typeof error;
  }
}

export interface RecordRules {
  readonly secrets: SecretNames;
  /** Null: no curl line. */
  readonly replay: ReplayRules | null;
  /** Files of this library, which are not the user's. */
  readonly ownFolder: string | null;
  readonly reader: CarefulReader;
  readonly methods: ProviderMethods | null;
}

/** Where a position is, as a text; null: nowhere that can be told. */
export type Locate = (position: Position) => string | null;

/** The record of a block that has been judged. */
export function blockRecordOf(
  block: Block,
  classification: Classification<RequestState>,
  gcMs: number,
  delayed: readonly RequestState[],
  locate: Locate,
  rules: RecordRules,
): BlockRecord {
  const { secrets, replay, reader, methods } = rules;
  const { cause, culprit, suspect } = classification;
  // In a bundle only the map tells a dependency from the user's code.
  const isUsers: IsUsers = (frame) => isUserFrame(frame, rules.ownFolder) && !IN_DEPENDENCY.test(locate(frame) ?? '');
  const { frames, user } = shownStack(classification.shown, isUsers, locate);
  const refOf = (state: RequestState | null) => (state === null ? null : requestRefOf(state, secrets, reader));
  const running = cause === 'javascript' && user !== null ? frames : [];
  const offloadable = reader.read('the methods', () => methods?.runningIn(running, isUsers) ?? null, null);
  return {
    kind: 'block',
    startedAt: epochMsOf(block.startMs),
    durationMs: block.endMs - block.startMs,
    provenMs: classification.provenMs,
    cause,
    request: refOf(culprit),
    suspect: refOf(suspect),
    location: user === null ? null : locate(user),
    stack: frames.slice(0, MAX_STACK).map((frame) => lineOf(frame, locate)),
    ...(offloadable === null ? null : { offloadable }),
    gcMs,
    delayed: delayed.slice(0, MAX_DELAYED).map((state) => requestRefOf(state, secrets, reader)),
    curl:
      culprit === null || replay === null
        ? null
        : reader.read('the curl line', () => replayOf(culprit, replay, secrets), null),
    note: (culprit ?? suspect)?.note ?? null,
  };
}

/** Looks up where the positions of a block are. `ask` is the watchdog; what it does not tell is where the compiled code is. */
export async function locateIn(
  { shown }: Classification<RequestState>,
  ask: (positions: readonly Position[]) => Promise<readonly (string | null)[] | null>,
  compiled: Locate,
): Promise<Locate> {
  const positions = new Map<string, Position>();
  for (const { file, line, column } of shown.flatMap(({ frames }) => withoutProbe(frames))) {
    // Of others Node knows the map, or nobody.
    if (file !== null && !file.startsWith('node:') && !SourceMaps.isTypeScript(file))
      positions.set(keyOf({ file, line, column }), { file, line, column });
  }
  const keys = [...positions.keys()].slice(0, MAX_POSITIONS);
  const locations = await ask(keys.map((key) => positions.get(key)!));
  const told = new Map(keys.map((key, i) => [key, locations?.[i]]));
  return (position) => told.get(keyOf(position)) ?? compiled(position);
}

const keyOf = ({ file, line, column }: Position): string => `${file}:${line}:${column}`;

/** Names a request in a record, without its secrets. Never throws: what cannot be read is left out. */
export function requestRefOf(state: RequestState, secrets: SecretNames, reader: CarefulReader): RequestRef {
  const { span } = state;
  const route = reader.read('the route', () => state.route, null);
  const method = reader.read('the method', () => state.request?.method, undefined);
  return {
    id: reader.read('the id', () => state.id, ''),
    method: method === undefined ? (route?.method ?? '_OTHER') : methodLabel(method),
    route: route?.pattern ?? '',
    handler: route?.handler?.name ?? null,
    url: reader.read('the URL', () => redactUrl(sentUrl(state), route?.pattern ?? null, secrets), ''),
    // Without a span the caller's trace, which a tracer of ours would have taken over.
    traceId: span?.traceId ?? reader.read('the trace', () => state.traceparent?.slice(3, 35) ?? null, null),
    // Not the one of the header: that is the caller's span.
    ...(span === null ? null : { spanId: span.spanId }),
  };
}

interface Place {
  readonly frames: readonly Frame[];
  readonly user: Frame | null;
  count: number;
}

type IsUsers = (frame: Frame) => boolean;

/**
 * The stack of the source line that was seen most often, and the user's frame in it: compiled code may have one line. Where most
 * looks show no code of the user's, the stack of the dependency's function that was; a stack that is cut shows nothing.
 */
function shownStack(looks: readonly Look<RequestState>[], isUsers: IsUsers, locate: Locate): Omit<Place, 'count'> {
  const places = new Map<string, Place>();
  let ofUsers = 0;
  for (const look of looks) {
    const frames = withoutProbe(look.frames);
    const user = frames.find(isUsers) ?? null;
    if (user !== null) ofUsers += 1;
    const key = user === null ? `${frames[0]?.file} ${frames[0]?.name}` : locate(user)!.replace(/:\d+$/, '');
    entryOf(places, key, () => ({ frames, user, count: 0 })).count += 1;
  }
  const isMostlyUsers = ofUsers > 0 && 2 * ofUsers >= looks.filter(({ cut }) => !cut).length;
  const candidates = [...places.values()].filter(({ user }) => (user !== null) === isMostlyUsers);
  const [most] = candidates.toSorted((a, b) => b.count - a.count);
  return most ?? { frames: [], user: null };
}

function lineOf(frame: Frame, locate: Locate): string {
  const prefix = frame.async ? 'async ' : '';
  return `${prefix}${frame.name ?? '<anonymous>'} (${locate(frame) ?? 'native'})`;
}
