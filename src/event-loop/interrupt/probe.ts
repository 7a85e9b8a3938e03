import { performance } from 'node:perf_hooks';
import { runInThisContext } from 'node:vm';
import { requestContext, type RequestOwner, type RequestState } from '../../core/request-state.js';
import { SEQ, LATE_MS } from '../beat.js';
import { beginsInRead, type Frame, type Look, type Source, type Unknown } from '../frame.js';
import { progressOf, type Naming } from './naming.js';

// This file's functions run inside an interrupt, on top of whatever blocks the loop. A regular expression in here, run
// while the interrupted code is inside one, ends the process (V8's engine is not re-entrant from its own interrupt).
// So: no regex, no JSON, no formatting, no user code, and nothing that others may have replaced.
// eslint-disable-next-line typescript/unbound-method -- it asks for no `this`
const { captureStackTrace } = Error;
// eslint-disable-next-line typescript/unbound-method -- called with a `this`
const { getStore } = requestContext;
// eslint-disable-next-line typescript/unbound-method -- called with a `this`
const { includes, startsWith } = String.prototype;
const { apply } = Reflect;
const nowMs: () => number = performance.now.bind(performance);

export type Whose =
  | { readonly state: RequestState; readonly source: Source; readonly unknown: null }
  | { readonly state: null; readonly source: null; readonly unknown: Unknown };

/** An application, and whether its requests enter the context store. */
type Application = RequestOwner & { readonly contextEnabled: boolean };

/** Whose code runs, by its names and the context store. `cut`: the frames are not all. Called inside the interrupt. */
export function whoseCode(frames: readonly Frame[], cut: boolean, naming: Naming, application: Application): Whose {
  const named = naming.current ?? naming.named(frames);
  const part = application.contextEnabled ? apply(getStore, requestContext, []) : undefined;
  const request = part?.within ?? part;
  const stored = request?.owner === application ? request : null;
  if (named !== null && stored !== null && named !== stored) return nobody('disputed');
  if (named !== null) return { state: named, source: naming.current === null ? 'named' : 'sync', unknown: null };
  if (stored !== null) {
    return { state: stored, source: (progressOf(stored)?.handler ?? 0) === 0 ? 'store' : 'aside', unknown: null };
  }
  const isBackground = application.contextEnabled && part === undefined && !cut && !beginsInRead(frames);
  return nobody(isBackground ? 'background' : 'unseen');
}

const nobody = (unknown: Unknown): Whose => ({ state: null, source: null, unknown });

type Sample = Look<RequestState> & { settledNext: RequestState | null };

/** What the watchdog sends, and takes back with what was seen. Plain values only. */
export interface Message {
  seq: number;
  at: number;
  ok: boolean;
  method?: string | undefined;
  route?: string | undefined;
  handler?: string | undefined;
  frames?: readonly Frame[];
}

/** Async frames come last, so a stack must be read to its end to see who waits for it. */
const STACK_LIMIT = 160;
/** Frames that travel back to the watchdog, for its own line on stderr. */
const FRAMES_SENT = 24;
const MAX_SAMPLES = 256;

/** Answers the watchdog from inside the blocked stack. It is found as a hidden property of the main context's global. */
export class Probe {
  /** Near a stack overflow there is no room for a look; such a look is lost, and the application is not touched. */
  failed = 0;
  /** Looks at the loop's current (or, until the next look, latest) block. */
  private samples: Sample[] = [];
  private seq = -1;
  private readonly mainGlobal = runInThisContext('globalThis') as object;

  constructor(
    readonly name: string,
    private readonly words: Int32Array,
    private readonly naming: Naming,
    private readonly application: Application,
    private readonly now: () => number = nowMs,
  ) {
    Object.defineProperty(this.mainGlobal, name, { value: this.serve, configurable: true, enumerable: false });
  }

  /** The looks at the block `seq`. */
  samplesOf(seq: number): readonly Look<RequestState>[] {
    if (this.seq !== seq) return [];
    const taken = this.samples;
    this.samples = [];
    return taken;
  }

  /** The loop has turned: what was seen of a block that is none is forgotten, and no request is kept. */
  turned(): void {
    this.samples = [];
  }

  close(): void {
    Reflect.deleteProperty(this.mainGlobal, this.name);
  }

  private readonly serve = (message: Message): void => {
    // The loop has turned since the watchdog asked: whoever runs now did not block it.
    if (message.seq !== this.words[SEQ]) return;
    try {
      const sample = this.look(message.at);
      if (this.seq !== message.seq) {
        this.seq = message.seq;
        this.samples = [];
      }
      const { samples } = this;
      if (samples.length < MAX_SAMPLES) samples[samples.length] = sample;
      message.ok = true;
      message.frames = firstOf(sample.frames);
      // What may be only likely is not said on stderr.
      if (sample.state === null || sample.source === 'aside') return;
      const route = sample.state.knownRoute;
      if (route === null) return;
      message.method = route.method;
      message.route = route.pattern;
      message.handler = route.handler?.name;
    } catch {
      this.failed += 1;
    }
  };

  private look(requestedMs: number): Sample {
    const { naming } = this;
    const servedMs = this.now();
    const frames = captureFrames();
    const cut = frames.length === 0 || frames.length >= STACK_LIMIT;
    const whose = whoseCode(frames, cut, naming, this.application);
    naming.awaitFirstOn();
    const { changes, changesBeforeTurn: changesBefore } = naming;
    const sample: Sample = { requestedMs, servedMs, ...whose, frames, cut, changes, changesBefore, settledNext: null };
    if (servedMs - requestedMs > LATE_MS) naming.onNextSettled((state) => (sample.settledNext = state));
    return sample;
  }
}

function firstOf(frames: readonly Frame[]): Frame[] {
  const first: Frame[] = [];
  for (let i = 0; i < frames.length && i < FRAMES_SENT; i++) first[i] = frames[i]!;
  return first;
}

/** The stack as raw frames, innermost first; none where it cannot be read. The application's formatting of stacks is not called. */
export function captureFrames(): Frame[] {
  return capture<Frame>(copyFrames, captureFrames);
}

/** The same from the caller of `below` on, and only the names: each frame that is left out makes it cheaper. */
export function captureNames(below: Function): Pick<Frame, 'name'>[] {
  return capture(copyNames, below);
}

function capture<T>(copy: (error: unknown, sites: NodeJS.CallSite[]) => T[], below: Function): T[] {
  const { stackTraceLimit } = Error;
  // eslint-disable-next-line typescript/unbound-method -- put back as it was, never called
  const prepareStackTrace = Error.prepareStackTrace;
  const holder: { stack?: unknown } = {};
  try {
    Error.stackTraceLimit = STACK_LIMIT;
    Error.prepareStackTrace = copy;
    captureStackTrace(holder, below);
    // While the interrupted code formats a stack itself, V8 gives its own text instead.
    return typeof holder.stack === 'string' ? [] : (holder.stack as T[]);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    Error.prepareStackTrace = prepareStackTrace;
  }
}

/** V8 knows it, the type declarations do not. */
type CallSite = NodeJS.CallSite & { isAsync(): boolean; getEnclosingLineNumber?(): number | null };

/** Of code that a bundler runs by `eval()`, what its `sourceURL` says; that of a template is no file. */
function fileOf(site: CallSite): string | null {
  const file = site.getFileName() ?? null;
  if (file !== null || !site.isEval()) return file;
  const url = site.getScriptNameOrSourceURL() ?? '';
  return apply(startsWith, url, ['webpack']) ? url : null;
}

function copyFrames(_error: unknown, sites: NodeJS.CallSite[]): Frame[] {
  const frames: Frame[] = [];
  for (let i = 0; i < sites.length; i++) {
    const site = sites[i] as CallSite;
    frames[i] = {
      name: site.getFunctionName(),
      typeName: mayBeOfProvider(site) ? site.getTypeName() : null,
      file: fileOf(site),
      line: site.getLineNumber() ?? 0,
      column: site.getColumnNumber() ?? 0,
      functionLine: site.getEnclosingLineNumber?.() ?? 0,
      async: site.isAsync(),
    };
  }
  return frames;
}

/** Of others a type's name is not asked: each costs as much as the rest of a frame. Neither getters nor proxies run for it. */
function mayBeOfProvider(site: CallSite): boolean {
  const file = fileOf(site);
  return (
    file !== null &&
    file !== '' &&
    !site.isAsync() &&
    !apply(includes, file, ['node_modules']) &&
    !apply(startsWith, file, ['node:'])
  );
}

function copyNames(_error: unknown, sites: NodeJS.CallSite[]): Pick<Frame, 'name'>[] {
  const names: Pick<Frame, 'name'>[] = [];
  for (let i = 0; i < sites.length; i++) names[i] = { name: sites[i]!.getFunctionName() };
  return names;
}
