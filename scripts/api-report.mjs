// The types that users can see, as one text per entry point: etc/nestjs-perf.api.md. Fails when they have changed without it
// (`npm run api`); `npm run api -- --update` writes it, so that a change of the public surface stands in the diff of its commit.
// api-extractor is no choice: its releases bring a TypeScript of their own along, and TypeScript 7 has no compiler interface yet.
// Needs a build in dist/.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const REPORT = 'etc/nestjs-perf.api.md';
const { exports: entries } = JSON.parse(readFileSync('package.json', 'utf8'));

const COMMENT = /\/\*[\s\S]*?\*\//g;

/** A statement as TypeScript's emitter writes it: from one first column to the next. */
function splitStatements(text) {
  const statements = [];
  let open = null;
  for (const line of text.replaceAll(COMMENT, '').split('\n')) {
    if (line.trim() === '') continue;
    open = open === null ? [line] : [...open, line];
    // `}` ends a block, `;` a statement of one line or the last line of several.
    if (/^\S.*;$|^\};?$/.test(line)) {
      statements.push(open.join('\n'));
      open = null;
    }
  }
  if (open !== null) throw new Error(`A statement without an end: ${open[0]}`);
  return statements;
}

const files = new Map();
/** A declaration file: its own declarations and re-exports by name, and where other names come from. */
function read(file) {
  const known = files.get(file);
  if (known !== undefined) return known;
  const module = { file, declarations: new Map(), imports: new Map(), exports: new Map() };
  files.set(file, module);
  for (const statement of splitStatements(readFileSync(file, 'utf8'))) {
    const list = /^(import|export)(?: type)? \{([^}]*)\}(?: from '([^']+)')?;$/s.exec(statement);
    const declared =
      /^(?:export )?(?:declare )?(?:abstract )?(?:class|interface|type|const|function|enum|let) ([\w$]+)/.exec(
        statement,
      );
    if (list !== null) {
      const [, kind, names, from] = list;
      const origin = from?.startsWith('.') ? join(dirname(file), from.replace(/\.js$/, '.d.ts')) : null;
      for (const entry of names.split(',').map((name) => name.trim().replace(/^type /, ''))) {
        const [, name, alias] = /^([\w$]+)(?: as ([\w$]+))?$/.exec(entry) ?? [];
        if (name === undefined || (from !== undefined && origin === null)) continue;
        module[kind === 'import' ? 'imports' : 'exports'].set(alias ?? name, { file: origin ?? file, name });
      }
    } else if (declared !== null) {
      const [, name] = declared;
      module.declarations.set(name, [...(module.declarations.get(name) ?? []), statement]);
      if (statement.startsWith('export ')) module.exports.set(name, { file, name });
    }
  }
  return module;
}

/** Follows re-exports and imports to the file that declares a name. */
function findDeclaration({ file, name }) {
  const module = read(file);
  if (module.declarations.has(name)) return { module, name };
  const next = module.exports.get(name) ?? module.imports.get(name);
  return next === undefined ? null : findDeclaration(next);
}

/** A declaration as a user meets it: without what is private, and without constructors, which Nest calls. */
function shown(statement) {
  return statement
    .split('\n')
    .filter((line) => !/^\s*(?:private |#|protected |constructor\()/.test(line))
    .join('\n')
    .replace(/^export /, '')
    .replace(/^declare /, '');
}

function report() {
  const reached = new Map();
  const sections = Object.entries(entries)
    .filter(([, target]) => target.endsWith('.js'))
    .map(([path, target]) => {
      const file = resolve(target.replace(/\.js$/, '.d.ts'));
      const names = [...read(file).exports.keys()].sort((a, b) => (a < b ? -1 : 1));
      const blocks = names.map((name) => {
        const found = findDeclaration({ file, name });
        if (found === null) throw new Error(`${path} exports \`${name}\`, and nothing declares it.`);
        return reach(found, reached, true);
      });
      return `## nestjs-perf${path.slice(1)}\n\n${fenced(blocks)}`;
    });
  const hidden = [...reached.values()].filter(({ exported }) => !exported);
  hidden.sort((a, b) => (a.key < b.key ? -1 : 1));
  const rest = hidden.map(({ key, text }) => `// ${key.split(':')[0]}\n${text}`);
  return [
    '# Public types\n\nWritten by `npm run api -- --update` from the declarations of the build. A change here is a change for users.',
    ...sections,
    `## Reached from there, not exported\n\n${fenced(rest)}`,
    '',
  ].join('\n\n');
}

/** Notes a declaration, and what its text names, and so on. */
function reach({ module, name }, reached, exported) {
  const key = `${relative('dist', module.file).replace(/\.d\.ts$/, '')}:${name}`;
  const known = reached.get(key);
  if (known !== undefined) {
    known.exported ||= exported;
    return known.text;
  }
  const text = module.declarations.get(name).map(shown).join('\n');
  reached.set(key, { key, text, exported });
  for (const [word] of text.matchAll(/[A-Za-z_$][\w$]*/g)) {
    if (word === name || (!module.declarations.has(word) && !module.imports.has(word))) continue;
    const found = findDeclaration({ file: module.file, name: word });
    if (found !== null) reach(found, reached, false);
  }
  return text;
}

function fenced(blocks) {
  return `\`\`\`ts\n${blocks.join('\n\n')}\n\`\`\``;
}

const fresh = report();
if (process.argv.includes('--update')) {
  mkdirSync(dirname(REPORT), { recursive: true });
  writeFileSync(REPORT, fresh);
  console.log(`${REPORT}: ${fresh.split('\n').length} lines`);
} else {
  const committed = readFileSync(REPORT, 'utf8').split('\n');
  const now = fresh.split('\n');
  const [was, is] = [new Set(committed), new Set(now)];
  if (fresh === committed.join('\n')) console.log(`The public types are those of ${REPORT}.`);
  else {
    for (const line of committed) if (!is.has(line)) console.error(`- ${line}`);
    for (const line of now) if (!was.has(line)) console.error(`+ ${line}`);
    console.error(`The public types have changed. When that is meant: npm run api -- --update`);
    process.exitCode = 1;
  }
}
