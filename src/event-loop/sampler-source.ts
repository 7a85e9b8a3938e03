import { isApplicationFrame } from './sample.js';
import { samplerThread } from './sampler.thread.js';
import { SourceLines } from './source-lines.js';
import { witnessThread } from './witness.thread.js';

/** The program of the sampler's thread, as text: it survives bundling. scripts/build.mjs makes a literal of it. */
export const samplerSource = (): string =>
  `(${samplerThread.toString()})(${[SourceLines, isApplicationFrame].join(', ')})`;

/** The program of the witness's thread. */
export const witnessSource = (): string => `(${witnessThread.toString()})()`;
