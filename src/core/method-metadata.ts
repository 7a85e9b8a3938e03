/**
 * What a decorator has said of a class's methods, those that it extends included, under their names: another decorator may put a
 * function of its own in a method's place, or an accessor, which is not read. A method that overrides another stands for itself.
 */
export function decoratedMethods(key: string, prototype: object): [name: string, said: unknown, placed: object][] {
  const found = new Map<string, [string, unknown, object]>();
  for (let owner: object | null = prototype; owner !== null; owner = Reflect.getPrototypeOf(owner)) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(owner))) {
      if (!found.has(name)) found.set(name, [name, Reflect.getOwnMetadata(key, owner, name), (value ?? {}) as object]);
    }
  }
  return [...found.values()].filter(([, said]) => said !== undefined);
}
