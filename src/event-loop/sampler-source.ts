import { residentBytes } from '../core/resident-set.js';
import { openKernelFiles } from './kernel-files.thread.js';
import { isApplicationFrame } from './sample.js';
import { samplerThread } from './sampler.thread.js';
import { SourceLines } from './source-lines.js';
import { serveLiveness } from './liveness.thread.js';

/** The program of the sampler's thread, as text, since a bundler would lose a file of its own. scripts/build.mjs makes a literal of it. */
export const samplerSource = (): string =>
  `(${samplerThread.toString()})(${[SourceLines, isApplicationFrame, serveLiveness, openKernelFiles, residentBytes].join(', ')})`;
