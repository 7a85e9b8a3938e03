/**
 * What a decorator has said of a method, under its name: another decorator may put a function of its own in the method's place.
 * Undefined where it does not stand, as on a method that overrides another.
 */
export function methodMetadata(key: string, prototype: object, name: string): unknown {
  let owner = prototype;
  while (!Object.hasOwn(owner, name)) owner = Object.getPrototypeOf(owner) as object;
  return Reflect.getOwnMetadata(key, owner, name);
}
