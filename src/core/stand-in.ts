/** Removed wrappers, and the property that each replaced: wrappers may be removed in any order. */
const gone = new WeakMap<object, PropertyDescriptor | undefined>();

/** Puts a function on an object in the place of its method. Returns its removal, whichever others are there then; null where the object is frozen. */
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
