/** Adds at the end, and lets the oldest go where there are more than `max`. */
export function pushBounded<T>(list: T[], item: T, max: number): void {
  list.push(item);
  if (list.length > max) list.shift();
}
