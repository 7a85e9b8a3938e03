import { epochMsOf } from '../core/clock.js';
import type { BlockRecord, SizeNote } from '../core/record.js';
import type { RequestState } from '../core/request-state.js';
import type { Look, Verdict } from './classify.js';
import { isUserFrame, withoutProbe, type Frame } from './frame.js';
import type { ReplayRules } from './replay/replay.js';
import { replayOf, requestRefOf } from './replay/request-ref.js';
import type { SecretNames } from './replay/secret-names.js';
import type { SourceMaps } from './source-maps.js';
import type { Standstill } from './loop-watch.js';

/** Requests that are named as delayed; each costs a few microseconds when the record is built. */
export const MAX_DELAYED = 200;
const MAX_STACK = 40;
/** Of a path with forward slashes, absolute or relative to the working directory. */
const IN_DEPENDENCY = /(?:^|\/)node_modules\//;

/** What a record is built with. */
export interface RecordRules {
  readonly secrets: SecretNames;
  /** Null: no curl line. */
  readonly replay: ReplayRules | null;
  /** Null: no source line. */
  readonly sourceMaps: SourceMaps | null;
  /** Files of this library, which are not the user's. */
  readonly ownFolder: string | null;
}

/** The record of a standstill that has been judged. */
export function blockRecordOf(
  standstill: Standstill,
  verdict: Verdict<RequestState>,
  gcMs: number,
  delayed: readonly RequestState[],
  rules: RecordRules,
): BlockRecord {
  const { secrets, replay, sourceMaps } = rules;
  const { culprit, suspect } = verdict;
  const shown = sourceMaps === null ? null : shownStack(verdict.shown, rules.ownFolder, sourceMaps);
  return {
    kind: 'block',
    startedAt: epochMsOf(standstill.startMs),
    durationMs: standstill.endMs - standstill.startMs,
    provenMs: verdict.provenMs,
    cause: verdict.cause,
    request: culprit === null ? null : requestRefOf(culprit, secrets),
    suspect: suspect === null ? null : requestRefOf(suspect, secrets),
    location: shown?.user == null ? null : sourceMaps!.locationOf(shown.user),
    stack: shown === null ? [] : shown.frames.slice(0, MAX_STACK).map((frame) => lineOf(frame, sourceMaps!)),
    gcMs,
    delayed: delayed.slice(0, MAX_DELAYED).map((state) => requestRefOf(state, secrets)),
    curl: culprit === null || replay === null ? null : replayOf(culprit, replay, secrets),
    note: noteOf(culprit ?? suspect),
  };
}

/** What the application said of the data's size; else the size of the response, where its headers tell. */
function noteOf(state: RequestState | null): SizeNote | null {
  if (state === null || state.note !== null) return state?.note ?? null;
  // Fastify hands its headers to `writeHead`, past `getHeader`; what was sent stands here.
  const sent = (state.response as { _header?: string | null } | null)?._header ?? '';
  const length = state.response?.getHeader('content-length') ?? /^content-length: (\d+)/im.exec(sent)?.[1];
  const bytes = Number(length ?? Number.NaN);
  return Number.isFinite(bytes) ? { bytes } : null;
}

/** The stack of the place that was seen most often, and the user's frame in it. */
function shownStack(
  looks: readonly Look<RequestState>[],
  ownFolder: string | null,
  sourceMaps: SourceMaps,
): { frames: readonly Frame[]; user: Frame | null } | null {
  const isUsers = (frame: Frame): boolean =>
    // In a bundle only the map tells a dependency from the user's code.
    isUserFrame(frame, ownFolder) && !IN_DEPENDENCY.test(sourceMaps.locationOf(frame) ?? '');
  const places = new Map<string, { frames: readonly Frame[]; user: Frame | null; count: number }>();
  let most: { frames: readonly Frame[]; user: Frame | null; count: number } | null = null;
  for (const look of looks) {
    const frames = withoutProbe(look.frames);
    const user = frames.find(isUsers) ?? null;
    const key = user === null ? '' : `${user.file}:${user.line}`;
    const place = places.get(key) ?? { frames, user, count: 0 };
    place.count += 1;
    places.set(key, place);
    const better = most === null || (most.user === null && user !== null);
    if (better || (place.count > most!.count && user !== null)) most = place;
  }
  return most;
}

function lineOf(frame: Frame, sourceMaps: SourceMaps): string {
  const prefix = frame.async ? 'async ' : '';
  return `${prefix}${frame.name ?? '<anonymous>'} (${sourceMaps.locationOf(frame) ?? 'native'})`;
}
