// The same question, decided by Statsig: the real SDK, talking to a server on this machine.
// Run: npx tsc -p tsconfig.run.json && node build/examples/statsig-gate/main.js
import { runStatsigExperiment } from './run.js';

const { report, exposures } = await runStatsigExperiment(3);
console.log(report.text);
console.log(`  Statsig was told of ${exposures} exposures.`);
