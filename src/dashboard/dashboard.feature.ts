import { ExperimentAnswers } from '../ports/experiment-answers.js';
import { HistoryReader } from '../ports/history.js';
import { LatencyFigures } from '../ports/latency-figures.js';
import { Profiler } from '../ports/loop-profile.js';
import { Overview } from '../ports/overview.js';
import { RejectedList } from '../ports/rejected.js';
import { RouteTimeFigures } from '../ports/route-time.js';
import { UserList } from '../ports/users.js';
import { PerfApplication } from '../request/application.js';
import { optionalPort, provideFeature, type Feature, type FeatureDefinition } from '../request/feature.js';
import { dashboardOption, type ResolvedDashboard } from './dashboard.options.js';

const DASHBOARD = Symbol('PERF_DASHBOARD');

export const dashboardFeature: FeatureDefinition<'dashboard', ResolvedDashboard> = {
  name: 'dashboard',
  title: 'dashboard',
  observes: 'process',
  needsServer: true,
  hasSink: true,
  option: dashboardOption,
  token: DASHBOARD,
  providers: [
    provideFeature<Feature>(
      'dashboard',
      DASHBOARD,
      [
        PerfApplication,
        Overview,
        ...[LatencyFigures, UserList, HistoryReader, ExperimentAnswers, RejectedList, Profiler, RouteTimeFigures].map(
          optionalPort,
        ),
      ],
      async (
        options: ResolvedDashboard | null,
        application: PerfApplication,
        overview: Overview,
        latency: LatencyFigures | null = null,
        users: UserList | null = null,
        history: HistoryReader | null = null,
        experiments: ExperimentAnswers | null = null,
        rejected: RejectedList | null = null,
        profiler: Profiler | null = null,
        times: RouteTimeFigures | null = null,
      ) => {
        if (options === null) return null;
        const sources = { overview, latency, times, users, history, experiments, rejected };
        const { Dashboard } = await import('./dashboard.js');
        return new Dashboard(options, application, sources, profiler);
      },
    ),
  ],
};
