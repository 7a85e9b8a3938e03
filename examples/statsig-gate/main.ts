// npm run example -- statsig-gate: the same question, decided by Statsig: the real SDK, talking to a server on this machine.
import { runStatsigExperiment } from './run.js';

const { report, exposures } = await runStatsigExperiment(3);
console.log(report.text);
console.log(`  Statsig was told of ${exposures} exposures.`);
