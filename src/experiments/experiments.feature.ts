import { ExperimentAnswers, type ExperimentAnswer } from '../ports/experiment-answers.js';
import { RecordHold } from '../ports/record-hold.js';
import type { RequestState } from '../request/request-state.js';
import { PerfApplication } from '../request/application.js';
import { optionalPort, provideFeature, providePort, type Feature, type FeatureDefinition } from '../request/feature.js';
import { ExperimentEngine } from './experiment-engine.js';
import { Experiments } from './experiments.js';
import { experimentsOption, type ResolvedExperiments } from './experiments.options.js';

/** Experiments of one application. Exists with the feature off as well: every check is then false. */
export class ExperimentsFeature implements Feature, ExperimentAnswers {
  readonly service: Experiments;
  readonly engine: ExperimentEngine | null;

  constructor(
    options: ResolvedExperiments | null,
    private readonly application: PerfApplication,
    holds: RecordHold | null,
  ) {
    const { logger, report, requests, units } = application;
    const warn = (message: string): void => logger.warn(message);
    this.engine = options === null ? null : new ExperimentEngine(options, report, units, holds, warn);
    this.service = new Experiments(this.engine, requests, report);
  }

  install(): void {
    this.application.requests.experiments = this.engine;
    this.engine?.start();
  }

  ended(state: RequestState): void {
    this.engine?.ended(state);
  }

  gates(): string[] {
    return this.engine?.gates() ?? [];
  }

  answer(gate: string): ExperimentAnswer {
    return this.service.report(gate);
  }

  async close(flushMs: number): Promise<void> {
    await this.engine?.close(flushMs);
  }
}

export const experimentsFeature: FeatureDefinition<'experiments', ResolvedExperiments> = {
  name: 'experiments',
  title: 'experiments',
  observes: 'requests',
  service: Experiments,
  option: experimentsOption,
  token: ExperimentsFeature,
  providers: [
    provideFeature(
      'experiments',
      ExperimentsFeature,
      [PerfApplication, optionalPort(RecordHold)],
      (options: ResolvedExperiments | null, application: PerfApplication, holds: RecordHold | null) =>
        new ExperimentsFeature(options, application, holds),
    ),
    providePort(ExperimentAnswers, ExperimentsFeature, (feature) => (feature.engine === null ? null : feature)),
  ],
};
