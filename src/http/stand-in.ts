/** Gives a function that stands for a method the method's name, and its metadata and properties, those that it gets later too. */
export function likeMethod<F extends object>(stands: F, method: { readonly name: string; readonly length: number }): F {
  Object.setPrototypeOf(stands, method);
  const { name, length } = method;
  return Object.defineProperties(stands, {
    name: { value: name, configurable: true },
    length: { value: length, configurable: true },
  });
}

/** Puts it on an instance. Returns what takes it away again; null where the instance is frozen. */
export function putOn(instance: object, methodName: string, stands: object): (() => void) | null {
  const before = Object.getOwnPropertyDescriptor(instance, methodName);
  const property = { value: stands, configurable: true, writable: true, enumerable: before?.enumerable ?? false };
  if (!Reflect.defineProperty(instance, methodName, property)) return null;
  return () => {
    // Something else has been put there meanwhile: it stays.
    if (Reflect.get(instance, methodName) !== stands) return;
    if (before === undefined) Reflect.deleteProperty(instance, methodName);
    else Object.defineProperty(instance, methodName, before);
  };
}
