import { pushBounded } from '../core/push-bounded.js';
import { MAX_POINTS } from './view.js';

/** Adds a chart's point. Points of a time to come, from before the wall clock was set back, go: a chart runs forwards. */
export function pushPoint<T extends readonly [at: number, ...unknown[]]>(points: T[], point: T): void {
  while (points.length > 0 && points.at(-1)![0] > point[0]) points.pop();
  pushBounded(points, point, MAX_POINTS);
}
