/**
 * Whether a minifier has named a class: another build gives that name to another one. It writes no space before the brace either,
 * which tells `class S3 {` apart.
 */
export function isMinified(type: Function): boolean {
  const { name } = type;
  const source = Function.prototype.toString.call(type);
  return name.length <= 2 && (/^[a-z_$]/.test(name) || !/\s/.test(source[source.indexOf('{') - 1]!));
}
