/** `*` is any text within a segment, `**` any segments; `/admin/**` is `/admin` and all below it. */
export function compileGlob(glob: string): RegExp {
  const source = glob.replaceAll(/\/\*\*|\*\*|[*]|[.+?^${}()|[\]\\]/g, (found) => {
    if (found === '/**') return '(?:/.*)?';
    if (found === '**') return '.*';
    return found === '*' ? '[^/]*' : `\\${found}`;
  });
  return new RegExp(`^${source}$`);
}
