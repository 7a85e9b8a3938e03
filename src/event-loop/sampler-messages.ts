import type { KernelTexts } from '../ports/kernel-files.js';
import type { MODE, UNITS_PER_MS, WORD } from './beat.js';
import type { Timing } from './event-loop.options.js';
import type { Position } from './source-lines.js';
import type { Exposition, LivenessMessage, LivenessOptions } from './liveness.thread.js';

/** The input of the sampler's thread. */
export interface SamplerThreadData {
  readonly words: Int32Array;
  /** The thread's function can import nothing. */
  readonly beat: { readonly WORD: typeof WORD; readonly MODE: typeof MODE; readonly UNITS_PER_MS: typeof UNITS_PER_MS };
  readonly timing: Timing;
  /** Origin of the main thread's clock on the kernel's, which all threads read. */
  readonly originMs: number;
  readonly probeName: string;
  /** False where the inspector cannot be used: the thread serves `/live` alone. */
  readonly takesSamples: boolean;
  readonly workingDirectory: string | null;
  readonly reportsHangs: boolean;
  /** The main thread has maps of its own for files that a loader has transpiled. */
  readonly loaderMaps: boolean;
  /** Null without `eventLoop.port`. `/live` may name these methods of providers. */
  readonly liveness: (LivenessOptions & { readonly methods: ReadonlySet<string> }) | null;
}

/** Requests the source lines of positions, or the texts of small files. */
export type ThreadQuestion = { readonly id: number } & (
  | { readonly positions: readonly Position[] }
  | { readonly paths: readonly string[] }
);

/** `wake`: the main thread beats fast from now on. `end`: it has cleaned up after the samples. */
export type ThreadRequest = ThreadQuestion | { readonly metrics: Exposition } | 'wake' | 'stop' | 'end';

export type ThreadAnswer = { readonly id: number } & (
  | { readonly locations: readonly (string | null)[] }
  | { readonly files: KernelTexts }
);

export type ThreadMessage =
  | ThreadAnswer
  | LivenessMessage
  /** Samples fail one after the other: the inspector cannot be used here. */
  | { readonly reason: string }
  /** It has stopped and takes no more samples: it waits for the permission to end. */
  | { readonly stopped: true };
