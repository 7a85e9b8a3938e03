/** Gives a function that stands for a method the method's name, and its metadata and properties, those that it gets later too. */
export function likeMethod<F extends object>(stands: F, method: { readonly name: string; readonly length: number }): F {
  Object.setPrototypeOf(stands, method);
  const { name, length } = method;
  return Object.defineProperties(stands, {
    name: { value: name, configurable: true },
    length: { value: length, configurable: true },
  });
}

/** Puts a function on an object for its method. Returns what takes it away again; null where the object is frozen. */
export function putOn(target: object, methodName: string, stands: object): (() => void) | null {
  const before = Object.getOwnPropertyDescriptor(target, methodName);
  const property = { value: stands, configurable: true, writable: true, enumerable: before?.enumerable ?? false };
  if (!Reflect.defineProperty(target, methodName, property)) return null;
  return () => {
    // Something else has been put there meanwhile: it stays.
    if (Reflect.get(target, methodName) !== stands) return;
    if (before === undefined) Reflect.deleteProperty(target, methodName);
    else Object.defineProperty(target, methodName, before);
  };
}
