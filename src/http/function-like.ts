type Method = (this: unknown, ...parameters: unknown[]) => unknown;
type Shape = (name: string, run: Method) => Method;

/**
 * One for each number of declared parameters. A computed name, and parameters that stand there only to be counted, because V8
 * keeps a function whose `name` or `length` was defined anew as a table, and whoever calls it looks each property up.
 */
const SHAPES: readonly Shape[] = [
  (name, run) =>
    ({
      [name](this: unknown) {
        return run.apply(this, arguments as never);
      },
    })[name]!,
  (name, run) =>
    ({
      [name](this: unknown, _a: unknown) {
        return run.apply(this, arguments as never);
      },
    })[name]!,
  (name, run) =>
    ({
      [name](this: unknown, _a: unknown, _b: unknown) {
        return run.apply(this, arguments as never);
      },
    })[name]!,
  (name, run) =>
    ({
      [name](this: unknown, _a: unknown, _b: unknown, _c: unknown) {
        return run.apply(this, arguments as never);
      },
    })[name]!,
];

/** A function that calls `run` as it is called itself, with the name, the number of parameters and the own properties of `original`. */
export function functionLike(original: Method, run: Method): Method {
  const { name, length } = original;
  const shape = SHAPES[length];
  const like = (shape ?? SHAPES[0]!)(name, run);
  if (shape === undefined) Object.defineProperty(like, 'length', { value: length, configurable: true });
  return Object.assign(like, original);
}
