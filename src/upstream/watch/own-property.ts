/** Puts a method of ours on one object, before the one that it has; what is returned takes it away again. */
export function ownMethod<Name extends string, Of extends Record<Name, unknown>>(
  object: Of,
  name: Name,
  make: (before: Of[Name]) => Of[Name],
): () => void {
  const descriptor = Object.getOwnPropertyDescriptor(object, name);
  const own = make(object[name]);
  Object.defineProperty(object, name, { value: own, configurable: true, writable: true, enumerable: false });
  return () => {
    // Somebody has put another one before ours: it stays, and only passes on.
    if (object[name] !== own) return;
    if (descriptor === undefined) Reflect.deleteProperty(object, name);
    else Object.defineProperty(object, name, descriptor);
  };
}
