import { normalQuantile, normalUpperTail, studentQuantile } from './distributions.js';
import { bounded, twoSided, type Inference, type Lift } from './relative-lift.js';

/**
 * The number of units at which the bound is tightest. Fixed, because it must not depend on what is seen. Few, because
 * guessing too low costs little (1.2 times the width at 100 times the units) and too high a lot.
 */
const TUNED_FOR_UNITS = 200;

/**
 * The test for people who peek: with t units, B = √[(t+ρ)/t · ln((t+ρ)/(ρα²))]·SE bounds the error at all looks together
 * by α (Robbins 1970; Waudby-Smith et al. 2021, asymptotic confidence sequences), ρ = N/(ln ln(e/α²) - 2 ln α) (Eppo and
 * GrowthBook, sequential testing). The bound is one of the normal distribution; with few units it is widened to the t
 * distribution's bound of equal tail. It holds as units come in, and for a fixed set of units that is looked at again.
 */
export function anytimeValid(lift: Lift, units: number, alpha: number): Inference {
  const logAlpha = Math.log(alpha);
  const rho = TUNED_FOR_UNITS / (Math.log(1 - 2 * logAlpha) - 2 * logAlpha);
  const growth = (units + rho) / units;
  const logRatio = Math.log((units + rho) / rho);
  const bound = Math.sqrt(growth * (logRatio - 2 * logAlpha));
  const critical = studentQuantile(normalUpperTail(bound), lift.degrees);
  // The same bound solved for α: the least α at which the interval leaves out what has this p-value at a single look.
  const anytime = (pValue: number): number =>
    Math.min(1, Math.exp(logRatio / 2 - normalQuantile(pValue / 2) ** 2 / (2 * growth)));
  const isCertain = anytime(lift.leastPValue) <= alpha;
  return { ...bounded(lift, critical, isCertain), pValue: anytime(twoSided(lift)) };
}
