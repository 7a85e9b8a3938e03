/** Lists the metadata of a class's methods by name, inherited ones included. An overriding method hides the one it overrides. */
export function decoratedMethods(key: string, prototype: object): [name: string, said: unknown, placed: object][] {
  const found = new Map<string, [string, unknown, object]>();
  for (let owner: object | null = prototype; owner !== null; owner = Reflect.getPrototypeOf(owner)) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(owner))) {
      if (!found.has(name)) found.set(name, [name, Reflect.getOwnMetadata(key, owner, name), (value ?? {}) as object]);
    }
  }
  return [...found.values()].filter(([, said]) => said !== undefined);
}
