/** Whether a minifier has named a class: another build gives that name to another one. It writes no space before the brace either. */
export function isMinified(type: Function): boolean {
  const source = Function.prototype.toString.call(type);
  return type.name.length <= 2 && source[source.indexOf('{') - 1] !== ' ';
}
