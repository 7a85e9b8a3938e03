import { randomBytes } from 'node:crypto';
import { threadId } from 'node:worker_threads';
import type { OncePerCause } from '../core/reporter.js';
import type { RequestOwner } from '../request/request-state.js';
import { WORD } from './beat.js';
import { SAMPLES_PER_SECOND, type Timing } from './event-loop.options.js';
import { Probe } from './interrupt/probe.js';
import { SamplerWorker, type HolderTarget } from './sampler-worker.js';
import { withoutProbe, type Sample, type TakenSample } from './sample.js';
import type { Position } from './source-lines.js';

/** Stack samples of the main thread, with the request in whose async context each was taken. */
export class Sampler {
  /** Receives each sample of the regular rate, outside of the interrupt: at the next tick of the loop. */
  onSample: ((sample: Sample) => void) | null = null;
  private readonly worker: SamplerWorker;
  private readonly probeName = `nestjs-perf:probe:${threadId}:${randomBytes(4).toString('hex')}`;
  private probe: Probe | null = null;

  constructor(
    private readonly words: Int32Array,
    timing: Timing,
    private readonly application: RequestOwner,
    reportsHangs: boolean,
    report: OncePerCause,
    holders: HolderTarget | null = null,
  ) {
    this.worker = new SamplerWorker(words, timing, this.probeName, reportsHangs, report, holders);
    this.rate(null);
  }

  get running(): boolean {
    return this.worker.running;
  }

  start(): void {
    // Nobody takes regular samples: those of blocks remain.
    if (this.onSample === null) this.words[WORD.rate] = 0;
    this.worker.start();
    if (this.worker.running) this.probe = new Probe(this.probeName, this.words, this.application);
  }

  stop(): void {
    this.worker.stop();
  }

  close(): void {
    this.probe?.close();
  }

  /** Samples a second while there is work, 1 to 200; null: the usual rate. */
  rate(perSecond: number | null): void {
    this.words[WORD.rate] = Math.min(200, Math.max(1, perSecond ?? SAMPLES_PER_SECOND));
  }

  /** The samples since the last tick that were taken in this time. */
  within(fromMs: number, toMs: number): readonly TakenSample[] {
    return this.probe?.samples.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs) ?? [];
  }

  /** The loop has turned, and its blocks are known: hands the samples on and keeps none of their requests. */
  turned(): void {
    const samples = this.probe?.takeAll() ?? [];
    const { onSample } = this;
    if (onSample === null) return;
    const intervalMs = 1_000 / this.words[WORD.rate]!;
    for (const { due, frames, atMs, cut, state } of samples) {
      if (due > 0) onSample({ atMs, cut, state, frames: withoutProbe(frames), intervalMs: due * intervalMs });
    }
  }

  locate(positions: readonly Position[], deadlineMs: number): Promise<readonly (string | null)[] | null> {
    return this.worker.locate(positions, deadlineMs);
  }
}
