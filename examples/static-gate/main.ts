// npm run example -- static-gate: is it faster? Half of the users skip a cleanup; the report says what that did.
import { runExperiment } from './run.js';

const report = await runExperiment(3);
console.log(report.text);
for (const caveat of report.caveats) console.log(`  - ${caveat}`);
