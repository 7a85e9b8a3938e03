import { performance } from 'node:perf_hooks';
import { runInThisContext } from 'node:vm';
import { requestContext, type RequestOwner, type RequestState } from '../../request/request-state.js';
import { MS_PER_UNIT, UNITS_PER_MS, WORD } from '../beat.js';
import type { Frame, Sample } from '../sample.js';

// These functions run inside an interrupt, on top of the code that blocks the loop. A regular expression in here, run while the
// interrupted code is inside one, ends the process. So: no regex, no JSON, no formatting, no user code, saved intrinsics only.
// eslint-disable-next-line typescript/unbound-method -- it needs no `this`
const { captureStackTrace } = Error;
// eslint-disable-next-line typescript/unbound-method -- called with a `this`
const { getStore } = requestContext;
// eslint-disable-next-line typescript/unbound-method -- called with a `this`
const { includes, startsWith } = String.prototype;
const { apply } = Reflect;
const nowMs: () => number = performance.now.bind(performance);

/** A sample's answer to the thread that requested it, for the line about a hang and for `/live`. */
export interface Description {
  readonly idle: boolean;
  readonly method: string | null;
  readonly route: string | null;
  readonly handler: string | null;
  readonly frames: readonly Frame[];
}

const STACK_LIMIT = 2_000;
/** Frames that are kept of each end: the code that runs, and the code that has called or awaits it. */
const INNERMOST = 120;
const OUTERMOST = 60;
const FRAMES_DESCRIBED = 24;
const MAX_SAMPLES = 1_024;
/** The script that the thread evaluates, below the probe. */
const FRAMES_OF_SCRIPT = 1;

/** Takes samples inside the blocked stack. The thread finds it as a hidden property of the main context's global object. */
export class Probe {
  samples: Sample[] = [];
  private due = 0;
  private readonly mainGlobal = runInThisContext('globalThis') as object;

  constructor(
    readonly name: string,
    private readonly words: Int32Array,
    private readonly application: RequestOwner,
    private readonly now: () => number = nowMs,
  ) {
    Object.defineProperty(this.mainGlobal, name, { value: this.serve, configurable: true, enumerable: false });
  }

  takeAll(): Sample[] {
    const { samples } = this;
    this.samples = [];
    return samples;
  }

  close(): void {
    Reflect.deleteProperty(this.mainGlobal, this.name);
  }

  /** Takes a sample. Returns whether the loop was idle, or a description where the thread wants one; null: the stack was full. */
  private readonly serve = (): boolean | Description | null => {
    try {
      const atMs = this.now();
      const { words, samples } = this;
      const dueSoFar = words[WORD.due]!;
      const lateUnits = (atMs * UNITS_PER_MS - words[WORD.askedAt]!) | 0;
      const { frames, cut } = captureFrames(this.serve, FRAMES_OF_SCRIPT);
      const sample = {
        atMs,
        askedMs: lateUnits > 0 ? atMs - lateUnits * MS_PER_UNIT : atMs,
        due: dueSoFar - this.due,
        state: null,
        scope: null,
        frames,
        cut,
      };
      this.attribute(sample);
      this.due = dueSoFar;
      if (samples.length < MAX_SAMPLES) samples[samples.length] = sample;
      const idle = frames.length === 0 && !cut;
      return words[WORD.described] === 1 ? describe(sample, idle) : idle;
    } catch {
      return null;
    }
  };

  private attribute(sample: { state: RequestState | null; scope: RequestState | null }): void {
    const stored = apply(getStore, requestContext, []);
    if (stored === undefined || stored.owner !== this.application) return;
    sample.state = stored.within ?? stored;
    if (stored.within !== null) sample.scope = stored;
  }
}

function describe({ frames, state }: Sample, idle: boolean): Description {
  const route = state === null ? null : state.knownRoute;
  const first: Frame[] = [];
  for (let i = 0; i < frames.length && i < FRAMES_DESCRIBED; i++) first[i] = frames[i]!;
  return {
    idle,
    method: route === null ? null : route.method,
    route: route === null ? null : route.pattern,
    handler: route === null || route.handler === null ? null : route.handler.name,
    frames: first,
  };
}

export interface CapturedStack {
  readonly frames: Frame[];
  readonly cut: boolean;
}

/** The stack below the call of `above` without its first `skipped` frames, innermost first. Calls no formatter of the application. */
export function captureFrames(above: (...given: never[]) => unknown = captureFrames, skipped = 0): CapturedStack {
  const { stackTraceLimit } = Error;
  // eslint-disable-next-line typescript/unbound-method -- put back as it was, never called
  const prepareStackTrace = Error.prepareStackTrace;
  const holder: { stack?: unknown } = {};
  try {
    Error.stackTraceLimit = STACK_LIMIT;
    Error.prepareStackTrace = (_error, sites) => copyFrames(sites, skipped);
    captureStackTrace(holder, above);
    // While the interrupted code formats a stack itself, V8 gives its own text instead.
    return typeof holder.stack === 'string' ? { frames: [], cut: true } : (holder.stack as CapturedStack);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    Error.prepareStackTrace = prepareStackTrace;
  }
}

type CallSite = NodeJS.CallSite & { isAsync(): boolean; getEnclosingLineNumber?(): number | null };

function copyFrames(sites: NodeJS.CallSite[], skipped: number): CapturedStack {
  const frames: Frame[] = [];
  const { length } = sites;
  const cut = length > INNERMOST + OUTERMOST;
  for (let i = skipped; i < length; i++) {
    if (cut && i === INNERMOST) i = length - OUTERMOST;
    const site = sites[i] as CallSite;
    const file = site.getFileName() ?? null;
    frames[frames.length] = {
      name: site.getFunctionName(),
      typeName: mayBeOfProvider(file) ? site.getTypeName() : null,
      file,
      line: site.getLineNumber() ?? 0,
      column: site.getColumnNumber() ?? 0,
      functionLine: site.getEnclosingLineNumber?.() ?? 0,
      async: site.isAsync(),
    };
  }
  return { frames, cut };
}

/** The name of a type costs as much as the rest of a frame. Reading it runs neither getters nor proxies. */
function mayBeOfProvider(file: string | null): boolean {
  return (
    file !== null && file !== '' && !apply(includes, file, ['node_modules']) && !apply(startsWith, file, ['node:'])
  );
}
