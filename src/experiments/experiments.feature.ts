import { ExperimentAnswers, type ExperimentAnswer } from '../ports/experiment-answers.js';
import { RecordHold } from '../ports/record-hold.js';
import type { RequestState } from '../request/request-state.js';
import { PerfApplication } from '../request/application.js';
import { optionalPort, provideFeature, providePort, type Feature, type FeatureDefinition } from '../request/feature.js';
import type { ExperimentEngine } from './experiment-engine.js';
import { Experiments } from './experiments.js';
import { experimentsOption, type ResolvedExperiments } from './experiments.options.js';

/** Experiments of one application. Exists with the feature off as well: every check is then false. */
export class ExperimentsFeature implements Feature, ExperimentAnswers {
  readonly service: Experiments;

  constructor(
    readonly engine: ExperimentEngine | null,
    private readonly application: PerfApplication,
  ) {
    this.service = new Experiments(engine, application.requests, application.report);
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

async function makeEngine(
  options: ResolvedExperiments,
  { logger, report, units }: PerfApplication,
  holds: RecordHold | null,
): Promise<ExperimentEngine> {
  const { ExperimentEngine } = await import('./experiment-engine.js');
  return new ExperimentEngine(options, report, units, holds, (message) => logger.warn(message));
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
      async (options: ResolvedExperiments | null, application: PerfApplication, holds: RecordHold | null) =>
        new ExperimentsFeature(options === null ? null : await makeEngine(options, application, holds), application),
    ),
    providePort(ExperimentAnswers, ExperimentsFeature, (feature) => (feature.engine === null ? null : feature)),
  ],
};
