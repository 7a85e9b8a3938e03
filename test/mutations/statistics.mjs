const folder = 'src/experiments/statistics';
const core = 'src/core/statistics';
const tests = [
  'test/unit/experiments/statistics/compare-variants.test.ts',
  'test/unit/experiments/statistics/compare-variants.oracle.test.ts',
];
const cupedTests = ['test/unit/experiments/statistics/cuped.test.ts'];
const fewTests = [
  ...tests,
  'test/unit/experiments/few-units.test.ts',
  'test/unit/experiments/statistics/compare-variants.input.test.ts',
];
const splitTests = ['test/unit/experiments/statistics/simulation.test.ts'];

/** @type {import('./index.d.mts').Mutation[]} */
export const statistics = [
  {
    name: 'the variance of requests instead of the delta method’s',
    file: `${core}/ratio-mean.ts`,
    find: 'const averageCount = count / arm.length;',
    replace: 'const averageCount = 1;',
    tests,
  },
  {
    name: 'the variance divides by n',
    file: `${core}/ratio-mean.ts`,
    find: 'squares / (units - 1)',
    replace: 'squares / units',
    tests,
  },
  {
    name: 'the control’s error is left out of the lift',
    file: `${core}/inference.ts`,
    find: 'Math.hypot(relativeTreatmentError, ratio * relativeControlError)',
    replace: 'relativeTreatmentError + 0 * relativeControlError',
    tests,
  },
  {
    name: 'the control’s error is not scaled by the ratio',
    file: `${core}/inference.ts`,
    find: 'ratio * relativeControlError',
    replace: 'relativeControlError',
    tests,
  },
  {
    name: 'pooled degrees of freedom instead of Welch’s',
    file: `${core}/inference.ts`,
    find: 'return 1 / ((t * t) / treatment.degrees + (c * c) / control.degrees);',
    replace: 'return treatment.degrees + control.degrees + 0 * t * c;',
    tests,
  },
  {
    name: 'an interval goes below -100 %',
    file: `${core}/inference.ts`,
    find: 'ci: [Math.max(least, low), Math.max(least, high)]',
    replace: 'ci: [low + 0 * least, high]',
    tests: fewTests,
  },
  {
    name: 'units that happen to agree are a proof',
    file: `${core}/inference.ts`,
    find: 'if (standardError === 0) return leastPValue;',
    replace: 'if (standardError === 0) return 0 * leastPValue;',
    tests: fewTests,
  },
  {
    name: 'the warm-up is compared too',
    file: 'src/experiments/report/report-of.ts',
    find: '(isWarm ? warm : all)',
    replace: '(isWarm && 1 > 2 ? warm : all)',
    tests: fewTests,
  },
  {
    name: 'a one-sided interval',
    file: `${core}/inference.ts`,
    find: 'studentQuantile(alpha / 2, lift.degrees)',
    replace: 'studentQuantile(alpha, lift.degrees)',
    tests,
  },
  {
    name: 'a one-sided test',
    file: `${core}/inference.ts`,
    find: 'Math.min(1, 2 * studentUpperTail',
    replace: 'Math.min(1, studentUpperTail',
    tests,
  },
  {
    name: 'the detectable effect without its power',
    file: `${core}/inference.ts`,
    find: 'margin + POWER_Z * standardError',
    replace: 'margin + 0 * POWER_Z',
    tests,
  },
  {
    name: 'peeking is allowed for at the price of none',
    file: `${folder}/compare-variants.ts`,
    find: 'const inference = plan.sequential\n',
    replace: 'const inference = plan.sequential && false\n',
    tests,
  },
  {
    name: 'peeking is allowed for with half of α',
    file: `${core}/inference.ts`,
    find: 'Math.sqrt(growth * (logRatio - 2 * logAlpha))',
    replace: 'Math.sqrt(growth * (logRatio - logAlpha))',
    tests,
  },
  {
    name: 'CUPED centres each arm on itself',
    file: `${core}/ratio-mean.ts`,
    find: 'mean: ratio.mean - theta * x.average,',
    replace: 'mean: ratio.mean,',
    tests: cupedTests,
  },
  {
    name: 'CUPED pays nothing for its estimate',
    file: `${core}/ratio-mean.ts`,
    find: '* (1 + ofTheta)',
    replace: '',
    tests: cupedTests,
  },
  {
    name: 'CUPED with few units seen before',
    file: `${core}/ratio-mean.ts`,
    find: 'const LEAST_SHARE_SEEN_BEFORE = 0.5;',
    replace: 'const LEAST_SHARE_SEEN_BEFORE = 0;',
    tests: cupedTests,
  },
  {
    name: 'the split is compared with halves, whatever was asked for',
    file: `${folder}/compare-variants.ts`,
    find: 'const controlShare = 1 - treatmentShare;',
    replace: 'treatmentShare = 0.5;\n  const controlShare = 1 - treatmentShare;',
    tests: splitTests,
    only: 'the sample ratio',
  },
  {
    name: 'a skewed split alarms at 5 % instead of 0.1 %',
    file: `${folder}/compare-variants.ts`,
    find: 'const ALARM = 0.001;',
    replace: 'const ALARM = 0.05;',
    tests: splitTests,
    only: 'the sample ratio',
  },
];
