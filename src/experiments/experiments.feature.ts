import { EXPERIMENT_ANSWERS } from '../core/experiment-answers.js';
import { RECORD_HOLD } from '../core/record-hold.js';
import type { Feature, FeatureDefinition, FeatureHost } from '../http/feature.js';
import { aroundExperiments } from './experiment.decorator.js';
import { ExperimentEngine, EXPERIMENTS } from './experiment-engine.js';
import { Experiments } from './experiments.js';
import { experimentsOption, type ResolvedExperiments } from './experiments.options.js';

/** Experiments, wired to one application's requests. Exists with the feature off as well: every check is then false. */
class ExperimentsFeature implements Feature {
  readonly service: Experiments;
  private readonly engine: ExperimentEngine | null;

  constructor(
    options: ResolvedExperiments | null,
    private readonly host: FeatureHost,
  ) {
    const { nowMs, report, requests, units } = host;
    this.engine =
      options === null ? null : new ExperimentEngine(options, nowMs, report, units, () => RECORD_HOLD.get(requests));
    this.service = new Experiments(this.engine, requests, report);
  }

  install(): void {
    const { engine } = this;
    if (engine === null) return;
    const { handlers, requests } = this.host;
    EXPERIMENTS.set(requests, engine);
    EXPERIMENT_ANSWERS.set(requests, {
      gates: () => engine.totals().gates.map(({ gate }) => gate),
      answer: (gate) => this.service.report(gate),
    });
    requests.observe(engine);
    handlers.around(aroundExperiments(engine));
    engine.start();
  }

  async close(): Promise<void> {
    await this.engine?.close(this.host.flushTimeoutMs);
  }
}

export const experimentsFeature: FeatureDefinition<'experiments', ResolvedExperiments> = {
  name: 'experiments',
  title: 'experiments',
  observes: 'context',
  service: Experiments,
  option: experimentsOption,
  create: (options, host) => new ExperimentsFeature(options, host),
};
