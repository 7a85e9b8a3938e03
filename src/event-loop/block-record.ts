import { toEpochMs } from '../core/clock.js';
import { getOrAdd } from '../core/get-or-add.js';
import type { BlockRecord, RequestRef } from '../core/record.js';
import type { SecretNames } from '../core/secret-names.js';
import type { RequestState } from '../request/request-state.js';
import { methodLabel } from '../request/routes.js';
import { safeUrl } from '../request/safe-request.js';
import type { Classification } from './block.js';
import type { Block } from './loop-watch.js';
import type { ProviderMethods } from './provider-methods.js';
import { createReplay, type ReplayRules } from './replay/curl.js';
import { isApplicationFrame, type Frame, type Sample } from './sample.js';
import type { Locate } from './source-lines.js';

export const MAX_DELAYED = 200;
const MAX_STACK = 40;
const IN_DEPENDENCY = /(?:^|\/)node_modules\//;

export interface RecordRules {
  readonly secrets: SecretNames;
  readonly replay: ReplayRules | null;
  readonly ownFolder: string | null;
  readonly methods: ProviderMethods | null;
  readonly stack: boolean;
  /** The address in the curl line of a request whose socket is gone: `'127.0.0.1:3000'`. */
  readonly address: () => string | null;
}

export interface ClassifiedBlock {
  readonly block: Block;
  readonly classification: Classification;
  /** The resolver or measured method within the request whose code has blocked. */
  readonly scope: RequestState | null;
  readonly samples: number;
  readonly gcMs: number;
  readonly delayed: readonly RequestState[];
}

export function createBlockRecord(classified: ClassifiedBlock, locate: Locate, rules: RecordRules): BlockRecord {
  const { block, classification, scope, samples, gcMs, delayed } = classified;
  const { secrets, replay, methods } = rules;
  const { request, suspect } = classification;
  // In a bundle only the source map tells a dependency's code from the application's.
  const isApplications: IsApplications = (frame) =>
    isApplicationFrame(frame, rules.ownFolder) && !IN_DEPENDENCY.test(locate(frame) ?? '');
  const { frames, application } = chooseStack(rules.stack ? classification.shown : [], isApplications, locate);
  const referTo = (state: RequestState | null) => (state === null ? null : createRequestRef(state, secrets));
  const scopeName = scope?.route?.handler?.name ?? null;
  const named = referTo(request);
  return {
    kind: 'block',
    startedAt: toEpochMs(block.startMs),
    durationMs: block.endMs - block.startMs,
    provenMs: classification.provenMs,
    cause: classification.cause,
    // The request of a GraphQL server has no handler of Nest's: the resolver is named instead.
    request: named === null ? null : { ...named, handler: named.handler ?? scopeName },
    suspect: referTo(suspect),
    location: application === null ? null : locate(application),
    method: methods?.findIn(frames, isApplications) ?? scopeName,
    samples,
    stack: frames.slice(0, MAX_STACK).map((frame) => formatFrame(frame, locate)),
    gcMs,
    delayed: delayed.slice(0, MAX_DELAYED).map((state) => createRequestRef(state, secrets)),
    curl: request === null || replay === null ? null : createReplay(request, replay, secrets, rules.address()),
    note: (request ?? suspect)?.note ?? null,
  };
}

/** Names a request in a record, without its secrets. */
function createRequestRef(state: RequestState, secrets: SecretNames): RequestRef {
  const { span, route } = state;
  const method = state.request?.method;
  return {
    id: state.id,
    method: method === undefined ? (route?.method ?? '_OTHER') : methodLabel(method),
    route: route?.pattern ?? '',
    handler: route?.handler?.name ?? null,
    url: safeUrl(state, secrets),
    // Without a span of this application, the trace that the client sent.
    traceId: span?.traceId ?? state.traceparent?.slice(3, 35) ?? null,
    // A span of the client is left out: it is not this request.
    ...(span === null ? null : { spanId: span.spanId }),
  };
}

interface Place {
  readonly frames: readonly Frame[];
  readonly application: Frame | null;
  count: number;
}

type IsApplications = (frame: Frame) => boolean;

/**
 * Chooses the stack whose innermost line of the application is the most frequent; where most samples show no such line, the
 * one whose innermost function is.
 */
function chooseStack(
  samples: readonly Pick<Sample, 'frames' | 'cut'>[],
  isApplications: IsApplications,
  locate: Locate,
): Omit<Place, 'count'> {
  const places = new Map<string, Place>();
  let ofApplication = 0;
  for (const { frames } of samples) {
    const application = frames.find(isApplications) ?? null;
    if (application !== null) ofApplication += 1;
    const key =
      application === null ? `${frames[0]?.file} ${frames[0]?.name}` : locate(application)!.replace(/:\d+$/, '');
    getOrAdd(places, key, () => ({ frames, application, count: 0 })).count += 1;
  }
  // A stack that was cut may have lost its line.
  const isMostlyOwn = ofApplication > 0 && 2 * ofApplication >= samples.filter(({ cut }) => !cut).length;
  const candidates = [...places.values()].filter(({ application }) => (application !== null) === isMostlyOwn);
  const [most] = candidates.toSorted((a, b) => b.count - a.count);
  return most ?? { frames: [], application: null };
}

function formatFrame(frame: Frame, locate: Locate): string {
  const prefix = frame.async ? 'async ' : '';
  return `${prefix}${frame.name ?? '<anonymous>'} (${locate(frame) ?? 'native'})`;
}
