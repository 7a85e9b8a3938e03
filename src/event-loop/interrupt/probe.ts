import { channel, type Channel } from 'node:diagnostics_channel';
import type { RequestState } from '../../core/request-state.js';
import { SEQ } from '../beat.js';
import { LATE_MS } from '../timing.js';
import type { Frame } from '../frame.js';

// This file's functions run inside an interrupt, on top of whatever blocks the loop. A regular expression in here, run
// while the interrupted code is inside one, ends the process (V8's engine is not re-entrant from its own interrupt).
// So: no regex, no JSON, no formatting, no user code, and of Node's only what needs none of these. The linter holds this folder to it.

/**
 * How a sample knows its request. `aside`: from the store, while the request's route function waits, and for something else as
 * far as the stack shows.
 */
export type Source = 'sync' | 'slot' | 'store' | 'aside';

/** One look at the blocked stack. */
export interface Sample {
  /** When the watchdog asked, monotonic milliseconds. */
  readonly requestedMs: number;
  /** When the blocked code let it in. */
  readonly servedMs: number;
  /** Whose code ran; null: nobody's, or unknown. */
  readonly state: RequestState | null;
  readonly source: Source | null;
  readonly frames: readonly Frame[];
  /** Frames were left out because the stack is too deep. */
  readonly cut: boolean;
  /** For a look that came late: whose route function settled next. */
  settledNext: RequestState | null;
  /** How long at most a garbage collection that was not observed may have held it up, milliseconds. */
  unobservedGcMs: number;
}

/** What the watchdog sends, and takes back with what was seen. Plain values only. */
interface Message {
  seq: number;
  at: number;
  ok: boolean;
  method?: string | undefined;
  route?: string | undefined;
  handler?: string | undefined;
  frames?: readonly Frame[];
}

/** Tells whose code runs. Called inside the interrupt. */
export interface Identity {
  /** Called before the stack is read. */
  show(): void;
  of(frames: readonly Frame[]): RequestState | null;
  /** How the last answer was found. */
  readonly source: Source | null;
}

/** Async frames come last, so a stack must be read to its end to see who waits for it. */
const STACK_LIMIT = 160;
/** Frames that travel back to the watchdog, for its own line on stderr. */
const FRAMES_SENT = 24;
const MAX_SAMPLES = 256;

/** Answers the watchdog from inside the blocked stack. */
export class Probe {
  /** Looks at the loop's current (or, until the next look, latest) standstill. */
  private samples: Sample[] = [];
  private seq = -1;
  /** Near a stack overflow there is no room for a look; such a look is lost, and the application is not touched. */
  failed = 0;
  /** Hears of each look. Called inside the interrupt. */
  onLook: ((sample: Sample) => void) | null = null;
  /** Hears of a look that a native call held up. Called inside the interrupt. */
  onLate: ((sample: Sample) => void) | null = null;
  private readonly channel: Channel;

  constructor(
    readonly channelName: string,
    private readonly words: Int32Array,
    private readonly identity: Identity,
    private readonly nowMs: () => number,
  ) {
    this.channel = channel(channelName);
    this.channel.subscribe(this.serve);
  }

  /** The looks at the standstill `seq`. */
  samplesOf(seq: number): Sample[] {
    if (this.seq !== seq) return [];
    const taken = this.samples;
    this.samples = [];
    return taken;
  }

  close(): void {
    this.channel.unsubscribe(this.serve);
  }

  private readonly serve = (given: unknown): void => {
    const message = given as Message;
    // The loop has turned since the watchdog asked: whoever runs now did not block it.
    if (message.seq !== this.words[SEQ]) return;
    try {
      const servedMs = this.nowMs();
      this.identity.show();
      const frames = captureFrames();
      const state = this.identity.of(frames);
      if (this.seq !== message.seq) {
        this.seq = message.seq;
        this.samples = [];
      }
      const sample: Sample = {
        requestedMs: message.at,
        servedMs,
        state,
        source: this.identity.source,
        frames,
        cut: frames.length >= STACK_LIMIT,
        settledNext: null,
        unobservedGcMs: 0,
      };
      if (this.samples.length < MAX_SAMPLES) this.samples.push(sample);
      this.onLook?.(sample);
      if (servedMs - message.at > LATE_MS) this.onLate?.(sample);
      message.ok = true;
      message.frames = frames.slice(0, FRAMES_SENT);
      // What may be only likely is not said on stderr.
      if (state !== null && sample.source !== 'aside') {
        message.method = state.request?.method;
        message.route = state.knownRoute?.pattern;
        message.handler = state.knownRoute?.handler?.name;
      }
    } catch {
      this.failed += 1;
    }
  };
}

/** The stack as raw frames, innermost first. Neither the application's nor Node's formatting of stacks is called. */
export function captureFrames(): Frame[] {
  const { stackTraceLimit } = Error;
  // eslint-disable-next-line typescript/unbound-method -- put back as it was, never called
  const prepareStackTrace = Error.prepareStackTrace;
  const holder: { stack?: unknown } = {};
  try {
    Error.stackTraceLimit = STACK_LIMIT;
    Error.prepareStackTrace = copyFrames;
    Error.captureStackTrace(holder, captureFrames);
    return holder.stack as Frame[];
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    Error.prepareStackTrace = prepareStackTrace;
  }
}

/** V8 knows it, the type declarations do not. */
type CallSite = NodeJS.CallSite & { isAsync(): boolean; getEnclosingLineNumber?(): number | null };

function copyFrames(_error: unknown, sites: NodeJS.CallSite[]): Frame[] {
  const frames: Frame[] = [];
  for (let i = 0; i < sites.length; i++) {
    const site = sites[i] as CallSite;
    frames.push({
      name: site.getFunctionName(),
      file: site.getFileName() ?? null,
      line: site.getLineNumber() ?? 0,
      column: site.getColumnNumber() ?? 0,
      functionLine: site.getEnclosingLineNumber?.() ?? 0,
      async: site.isAsync(),
    });
  }
  return frames;
}
