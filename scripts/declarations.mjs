// The published declarations: those that the exports of the entries reach, by name. Private members have no types there, and need no comments.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseAst } from 'rolldown/parseAst';

const PRIVATE_COMMENT = /^ *\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n(?= *private )/gm;

/** Returns the text of each file that `entries` reach, without the declarations that no exported one names. */
export function pruneDeclarations(entries) {
  const files = new Map();
  const named = new Set();
  const read = (path) => {
    if (!files.has(path)) files.set(path, readDeclarations(path));
    return files.get(path);
  };
  const keyOf = (path, name) => `${path} ${name}`;
  /** Marks a name of a file, and all that its declaration names. */
  const mark = (path, name) => {
    const { bindings, stars } = read(path);
    if (named.has(keyOf(path, name))) return;
    named.add(keyOf(path, name));
    const all = bindings.get(name);
    if (all === undefined) for (const star of stars) mark(star, name);
    for (const { node, from } of all ?? []) {
      if (from === null) markNames(path, node);
      else mark(from.path, from.name);
    }
  };
  const markNames = (path, node) => {
    if (node.accessibility === 'private') return;
    if (node.type === 'TSImportType' && node.source.value.startsWith('.'))
      mark(findTarget(path, node.source.value), node.qualifier.left?.name ?? node.qualifier.name);
    if (node.type === 'Identifier' && read(path).bindings.has(node.name)) mark(path, node.name);
    for (const child of Object.values(node).flat()) if (typeof child?.type === 'string') markNames(path, child);
  };
  for (const path of entries) for (const name of read(path).bindings.keys()) mark(path, name);
  const isNamed = (path) => (name) => named.has(keyOf(path, name));
  const printed = [...files].map(([path, file]) => [path, print(file, isNamed(path))]);
  return printed.filter(([path, text]) => entries.includes(path) || text !== '');
}

const findTarget = (path, specifier) => join(dirname(path), specifier.replace(/\.js$/, '.d.ts'));

/** Names of a file, with the statement that declares each, or the file and name that it comes from. */
function readDeclarations(path) {
  const text = readFileSync(path, 'utf8');
  const { body } = parseAst(text, { lang: 'dts' });
  const bindings = new Map();
  const stars = [];
  const bind = (name, node, from = null) => bindings.set(name, [...(bindings.get(name) ?? []), { node, from }]);
  for (const node of body) {
    const own = node.source?.value.startsWith('.') === true;
    const source = own ? findTarget(path, node.source.value) : null;
    if (node.type === 'ExportAllDeclaration' && own) stars.push(source);
    for (const { local, imported, exported } of node.specifiers ?? []) {
      if (own) bind((exported ?? local).name, node, { path: source, name: (imported ?? local).name });
      else if (node.source === null) bind(exported.name, local);
    }
    const declaration = node.declaration ?? node;
    for (const { name } of declaration.declarations?.map(({ id }) => id) ?? (declaration.id ? [declaration.id] : []))
      bind(name, declaration);
  }
  return { text, body, bindings, stars };
}

function print({ text, body, bindings }, isNamed) {
  let end = 0;
  let printed = '';
  let hasOwn = false;
  for (const node of body) {
    const whole = text.slice(end, node.end);
    end = node.end;
    const names = [...bindings].filter(([, all]) => all.some((each) => each.node === (node.declaration ?? node)));
    const kept = names.filter(([name]) => isNamed(name));
    if (names.length > 0 && kept.length === 0) continue;
    hasOwn ||= names.length > 0;
    const dropped = (node.specifiers ?? []).filter(
      ({ local, exported }) => names.length > 0 && !isNamed((exported ?? local).name),
    );
    printed += dropped.reduceRight((rest, { start, end: last }) => {
      const at = start - (node.end - whole.length);
      return rest.slice(0, at) + rest.slice(at + (last - start)).replace(/^, ?/, '');
    }, whole);
  }
  return hasOwn ? `${printed.trimStart().replaceAll(PRIVATE_COMMENT, '')}\n` : '';
}
