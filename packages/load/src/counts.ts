export const increment = (counts: Map<string, number>, key: string): void =>
  void counts.set(key, (counts.get(key) ?? 0) + 1);

export const sum = (counts: Iterable<number>): number => [...counts].reduce((total, count) => total + count, 0);
