/** Functions that have been taken away, and what was there before each: another may still stand in its place. */
const gone = new WeakMap<object, PropertyDescriptor | undefined>();

/**
 * Puts a function on an object for its method. Returns what takes it away again, in whatever order several go and whatever else has
 * been put there meanwhile; null where the object is frozen.
 */
export function putOn(target: object, methodName: string, stands: object): (() => void) | null {
  const before = Object.getOwnPropertyDescriptor(target, methodName);
  const property = { value: stands, configurable: true, writable: true, enumerable: before?.enumerable ?? false };
  if (!Reflect.defineProperty(target, methodName, property)) return null;
  return () => {
    gone.set(stands, before);
    let left = Object.getOwnPropertyDescriptor(target, methodName);
    while (left !== undefined && gone.has(left.value as object)) left = gone.get(left.value as object);
    if (left === undefined) Reflect.deleteProperty(target, methodName);
    else Object.defineProperty(target, methodName, left);
  };
}
