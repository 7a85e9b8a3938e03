/** The symbol under which a framework keeps something of its own on an object; undefined where a version has none of that name. */
export function symbolOf(object: object, description: string): symbol | undefined {
  for (let at: object | null = object; at !== null; at = Object.getPrototypeOf(at) as object | null) {
    const found = Object.getOwnPropertySymbols(at).find((symbol) => symbol.description === description);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** What stands there. */
export const valueOf = (object: object, name: symbol): unknown => (object as Record<symbol, unknown>)[name];
