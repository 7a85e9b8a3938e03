import { randomBytes } from 'node:crypto';
import { threadId } from 'node:worker_threads';
import type { OncePerCause } from '../core/reporter.js';
import { workingDirectory } from '../core/working-directory.js';
import type { RequestOwner } from '../request/request-state.js';
import { WORD } from './beat.js';
import { SAMPLES_PER_SECOND, type Timing } from './event-loop.options.js';
import { Probe } from './interrupt/probe.js';
import type { Sample } from './sample.js';
import { SamplerWorker } from './sampler-worker.js';
import { SourceLines, type Locate, type Position } from './source-lines.js';
import type { Liveness } from './liveness.js';

const MAX_POSITIONS = 5_000;

/** Stack samples of the main thread: a thread requests each, and the probe takes it on top of the code that runs. */
export class Sampler {
  /** Receives each sample of the regular rate and the milliseconds of the loop that it represents, at the next tick of the loop. */
  onSample: ((sample: Sample, ms: number) => void) | null = null;
  readonly worker: SamplerWorker;
  private readonly probeName = `nestjs-perf:probe:${threadId}:${randomBytes(4).toString('hex')}`;
  private probe: Probe | null = null;
  private readonly compiled = new SourceLines(workingDirectory(), 0);

  constructor(
    private readonly words: Int32Array,
    timing: Timing,
    private readonly application: RequestOwner,
    reportsHangs: boolean,
    report: OncePerCause,
    liveness: Liveness | null = null,
  ) {
    this.worker = new SamplerWorker(words, timing, this.probeName, reportsHangs, report, liveness);
    this.setRate();
  }

  start(): void {
    // Without a consumer of regular samples only those of blocks remain.
    if (this.onSample === null) this.setRate(0);
    this.worker.start();
    if (this.worker.running) this.probe = new Probe(this.probeName, this.words, this.application);
  }

  close(): void {
    this.probe?.close();
  }

  setRate(perSecond = SAMPLES_PER_SECOND): void {
    this.words[WORD.rate] = perSecond;
  }

  within(fromMs: number, toMs: number): readonly Sample[] {
    return this.probe?.samples.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs) ?? [];
  }

  /** The loop has turned, and its blocks are known: hands the samples on and keeps none of their requests. */
  turned(): void {
    const samples = this.probe?.takeAll() ?? [];
    const intervalMs = 1_000 / this.words[WORD.rate]!;
    for (const sample of samples) if (sample.due > 0) this.onSample?.(sample, sample.due * intervalMs);
  }

  /** Resolves positions by the source maps; those that the thread does not answer in time stay the compiled code's. */
  async locate(positions: readonly Position[]): Promise<Locate> {
    const asked = new Map<string, Position>();
    for (const { file, line, column } of positions) {
      const position = { file, line, column };
      // A loader's source map of a TypeScript file is in the memory of the thread that loaded it: `compiled` finds it.
      if (file !== null && !file.startsWith('node:') && !SourceLines.isTypeScript(file) && asked.size < MAX_POSITIONS)
        asked.set(formatKey(position), position);
    }
    const locations = await this.worker.locate([...asked.values()]);
    const known = new Map([...asked.keys()].map((key, i) => [key, locations?.[i]]));
    return (position) => known.get(formatKey(position)) ?? this.compiled.locate(position);
  }
}

const formatKey = ({ file, line, column }: Position): string => `${file}:${line}:${column}`;
