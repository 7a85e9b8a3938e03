import { StatsigServer } from 'statsig-node';
import type { ExperimentReport } from 'nestjs-perf';
import { statsigGates } from 'nestjs-perf/statsig';
import { startLoopback } from './loopback.js';
import { runExperiment } from './run.js';

/** Runs the shop behind a gate of a real Statsig SDK whose server is on this machine. */
export async function runStatsigExperiment(seconds: number): Promise<{ report: ExperimentReport; exposures: number }> {
  const loopback = await startLoopback({ skip_async_cleanup: 50 });
  try {
    // In an application: only the secret key.
    const statsig = new StatsigServer('secret-loopback', {
      api: loopback.api,
      initStrategyForIDLists: 'none',
      initStrategyForIP3Country: 'none',
      disableRulesetsSync: true,
      disableDiagnostics: true,
    });
    await statsig.initializeAsync();
    const report = await runExperiment(seconds, statsigGates(statsig));
    await statsig.shutdownAsync(2_000);
    const exposures = loopback.events.filter(({ eventName }) => eventName === 'statsig::gate_exposure').length;
    return { report, exposures };
  } finally {
    await loopback.close();
  }
}
