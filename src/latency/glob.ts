/**
 * What a glob matches of route patterns: `*` is any text within a segment, `**` any segments; `/admin/**` is `/admin` and all
 * below it. Everything else stands for itself.
 */
export function globOf(glob: string): RegExp {
  const source = glob.replaceAll(/\/\*\*|\*\*|[*]|[.+?^${}()|[\]\\]/g, (found) => {
    if (found === '/**') return '(?:/.*)?';
    if (found === '**') return '.*';
    return found === '*' ? '[^/]*' : `\\${found}`;
  });
  return new RegExp(`^${source}$`);
}
