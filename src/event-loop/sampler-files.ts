import { KernelFiles, type KernelTexts } from '../ports/kernel-files.js';
import type { Sampler } from './sampler.js';

/** Reads files in the sampler's thread, once the event loop has one. */
export class SamplerFiles extends KernelFiles {
  private sampler: Sampler | null = null;

  connect(sampler: Sampler): void {
    this.sampler = sampler;
  }

  get running(): boolean {
    return this.sampler?.running === true;
  }

  read(paths: Iterable<string>): Promise<KernelTexts | null> | null {
    return this.running ? this.sampler!.readFiles([...paths]) : null;
  }
}
