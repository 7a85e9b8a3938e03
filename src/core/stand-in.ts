/** Puts a function on an object in the place of its method. Returns its removal, which leaves it where another wrapper has come over it. */
export function putOn(target: object, methodName: string, stands: object): () => void {
  const before = Object.getOwnPropertyDescriptor(target, methodName);
  const enumerable = before?.enumerable ?? false;
  Object.defineProperty(target, methodName, { value: stands, configurable: true, writable: true, enumerable });
  return () => {
    if (Object.getOwnPropertyDescriptor(target, methodName)?.value !== stands) return;
    if (before === undefined) Reflect.deleteProperty(target, methodName);
    else Object.defineProperty(target, methodName, before);
  };
}
