import type { Comparison } from '../statistics/comparison.js';

/** A relative change with its sign: `-4.9 %`. */
export const percent = (share: number): string => `${signed(share * 100)} %`;

/** Enough digits to see a small effect, no more. */
function signed(value: number): string {
  const digits = Math.abs(value) < 0.095 && value !== 0 ? 2 : 1;
  // No minus in front of a zero.
  return (Number(value.toFixed(digits)) + 0).toFixed(digits);
}

/** A share without a sign: `0.4 %`. */
export const rate = (share: number): string => `${(share * 100).toFixed(share > 0 && share < 0.00095 ? 2 : 1)} %`;

export const pValue = (p: number): string => (p < 0.0001 ? 'p < 0.0001' : `p ${p.toFixed(4)}`);

/** `latency -4.9 % (95 % CI -5.9 … -3.9), p 0.0001, 412 / 398 units, MDE 1.4 %`; with few units it says so. */
export function answer(metric: string, comparison: Comparison, unitName: string, areFew: boolean): string {
  const { relativeDelta, ci, control, treatment, minimumDetectableEffect } = comparison;
  const hasInterval = Number.isFinite(ci[0]) && Number.isFinite(ci[1]);
  const interval = hasInterval ? `95 % CI ${signed(ci[0] * 100)} … ${signed(ci[1] * 100)}` : 'no interval';
  return [
    `${metric} ${percent(relativeDelta)} (${interval})`,
    pValue(comparison.pValue),
    `${treatment.units} / ${control.units} ${unitName}`,
    ...(hasInterval ? [`MDE ${rate(minimumDetectableEffect)}`] : []),
    ...(areFew ? [`too few ${unitName} to rely on it`] : []),
  ].join(', ');
}
