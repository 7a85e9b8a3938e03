// npm run example -- ab-test [--statsig]: is it faster? Half of the users skip a cleanup; the report says what that did.
// With --statsig the real SDK of Statsig decides who skips it, talking to a server on this machine.
import { parseArgs } from 'node:util';
import { staticGates } from 'nestjs-perf';
import { runExperiment } from './run.js';
import { runStatsigExperiment } from './statsig.js';

const { values } = parseArgs({ options: { statsig: { type: 'boolean', default: false } } });
if (values.statsig) {
  const { report, exposures } = await runStatsigExperiment(3);
  console.log(report.text);
  console.log(`  Statsig was told of ${exposures} exposures.`);
} else {
  const report = await runExperiment(3, staticGates({ skip_async_cleanup: 0.5 }));
  console.log(report.text);
  for (const caveat of report.caveats) console.log(`  - ${caveat}`);
}
