import type { MessagePort } from 'node:worker_threads';
import type { KernelTexts } from '../ports/kernel-files.js';
import type { MODE, UNITS_PER_MS, WORD } from './beat.js';
import type { Timing } from './event-loop.options.js';
import type { Position } from './source-lines.js';

/** The input of the sampler's thread. */
export interface SamplerThreadData {
  readonly words: Int32Array;
  /** The thread's function can import nothing. */
  readonly beat: { readonly WORD: typeof WORD; readonly MODE: typeof MODE; readonly UNITS_PER_MS: typeof UNITS_PER_MS };
  readonly timing: Timing;
  readonly originMs: number;
  readonly probeName: string;
  readonly workingDirectory: string | null;
  readonly reportsHangs: boolean;
  /** The main thread has maps of its own for files that a loader has transpiled. */
  readonly loaderMaps: boolean;
  /** Receives a `LoopHolder` from each stack of a blocked loop, named by these provider methods; null without `port`. */
  readonly witness: { readonly port: MessagePort; readonly methods: ReadonlySet<string> } | null;
}

export interface LocationsRequest {
  readonly id: number;
  readonly positions: readonly Position[];
}
/** Requests the texts of small files. */
export interface FilesRequest {
  readonly id: number;
  readonly paths: readonly string[];
}
export type ThreadMessage =
  | { readonly id: number; readonly locations: readonly (string | null)[] }
  | { readonly id: number; readonly files: KernelTexts }
  /** Samples fail one after the other: the inspector cannot be used here. */
  | { readonly reason: string }
  /** It has stopped and takes no more samples: it waits for the permission to end. */
  | { readonly stopped: true };
