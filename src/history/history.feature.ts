import { CpuAllowance } from '../ports/cpu-allowance.js';
import { HistoryReader } from '../ports/history.js';
import { LatencyFigures } from '../ports/latency-figures.js';
import { RouteTimeFigures } from '../ports/route-time.js';
import { UserList } from '../ports/users.js';
import { PerfApplication } from '../request/application.js';
import { optionalPort, provideFeature, providePort, type FeatureDefinition } from '../request/feature.js';
import type { HistoryKeeper } from './history-keeper.js';
import { historyOption, type ResolvedHistory } from './history.options.js';

const HISTORY = Symbol('PERF_HISTORY');

export const historyFeature: FeatureDefinition<'history', ResolvedHistory> = {
  name: 'history',
  title: 'history',
  observes: 'process',
  option: historyOption,
  token: HISTORY,
  providers: [
    provideFeature(
      'history',
      HISTORY,
      [PerfApplication, ...[LatencyFigures, RouteTimeFigures, CpuAllowance, UserList].map(optionalPort)],
      async (
        options: ResolvedHistory | null,
        ...given: [PerfApplication, LatencyFigures, RouteTimeFigures, CpuAllowance, UserList]
      ) => {
        if (options === null) return null;
        // Imported here: an application without history does not parse it.
        const { HistoryKeeper } = await import('./history-keeper.js');
        return new HistoryKeeper(options, ...given);
      },
    ),
    providePort<HistoryKeeper>(HistoryReader, HISTORY, ({ history }) => history),
  ],
};
