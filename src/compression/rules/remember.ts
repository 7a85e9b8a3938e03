/** The same function, with its first answers remembered: of headers an application meets a handful. Hostile ones fill no memory. */
export function remember<T>(answer: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const now = answer(text);
    if (known.size < 64 && text.length <= 200) known.set(text, now);
    return now;
  };
}
