/** Whether a minifier has named a class: another build gives that name to another one. A minifier writes no space before the brace. */
export function isMinified(type: Function): boolean {
  const { name } = type;
  if (name.length > 3) return false;
  const source = Function.prototype.toString.call(type);
  // The name of an argument is no class name: `extends mixin({ … })`.
  const beforeBrace = /[^(](?=\{)/.exec(source)?.[0] ?? ' ';
  return !/\s/.test(beforeBrace) || (name.length <= 2 && /^[a-z_$]/.test(name));
}
