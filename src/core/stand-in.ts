/** Removed wrappers, and the property that each replaced: the applications of a process may close in any order. */
const gone = new WeakMap<object, PropertyDescriptor | undefined>();

/** Puts a function on an object in the place of its method. Returns its removal, whichever others are there then. */
export function putOn(target: object, methodName: string, stands: object): () => void {
  const before = Object.getOwnPropertyDescriptor(target, methodName);
  const enumerable = before?.enumerable ?? false;
  Object.defineProperty(target, methodName, { value: stands, configurable: true, writable: true, enumerable });
  return () => {
    gone.set(stands, before);
    let left = Object.getOwnPropertyDescriptor(target, methodName);
    while (left !== undefined && gone.has(left.value as object)) left = gone.get(left.value as object);
    if (left === undefined) Reflect.deleteProperty(target, methodName);
    else Object.defineProperty(target, methodName, left);
  };
}
