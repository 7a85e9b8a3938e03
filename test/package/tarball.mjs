// What the packed tarball may hold, and what the declarations of its entries may name.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const BESIDE_DIST = ['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'package.json'];
/** What the guides lead to travels with them. */
const GUIDES = /^docs\/[\w-]+\.md$|^docs\/images\/[\w-]+\.png$|^examples\/prometheus\/[\w-]+\.(json|yml)$/;
/** One file is CommonJS by its name: worker threads `require()` it from both twins. */
const IN_DIST = /^dist\/(?:[\w./-]+\.(?:js|d\.ts)|shared\/nestjs-perf\.offload-worker\.cjs)$/;
/** What an application of Nest has anyway; anything else in a declaration breaks users who lack that package. */
const ALLOWED_IN_DECLARATIONS = /^(node:|(@nestjs\/(common|core)|rxjs|reflect-metadata)(\/|$))/;
const SPECIFIER = /(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g;

/** Fails unless the tarball holds dist, the files that belong beside it, and the guides. */
export function holdsOnlyWhatShips(files) {
  const beside = files.filter((file) => !file.startsWith('dist/') && !GUIDES.test(file)).sort();
  assert.deepEqual(beside, BESIDE_DIST);
  const surprises = files.filter(
    (file) => file.startsWith('dist/') && file !== 'dist/cjs/package.json' && !IN_DIST.test(file),
  );
  assert.deepEqual(surprises, []);
  const modules = files.filter((file) => file.endsWith('.js'));
  // What entries share is declared by the files that they reach; nobody imports the command line tool.
  const entries = modules.filter((file) => !/\/(shared|bin)\//.test(file));
  const undeclared = entries.filter((file) => !files.includes(file.replace(/\.js$/, '.d.ts')));
  assert.deepEqual(undeclared, [], 'entries without declarations');
  const esm = entries.filter((file) => !file.startsWith('dist/cjs/'));
  const cjs = new Set(modules);
  const onlyEsm = esm.filter((file) => !cjs.has(file.replace('dist/', 'dist/cjs/')));
  assert.deepEqual(onlyEsm, [], 'entries without a CommonJS twin');
  return `${files.length} files`;
}

/** Fails unless README's sizes are those of npm within 5 %, of the download and unpacked, and nothing is installed with it. */
export function isAsLargeAsTold(readme, { size, unpackedSize }, dependencies) {
  const told = /(\d+) KB to download and ([\d.]+) MB unpacked, without a dependency/.exec(readme);
  assert.notEqual(told, null, 'README.md does not say how large the package is');
  assert.deepEqual(dependencies, []);
  const [kb, mb] = told.slice(1).map(Number);
  for (const [is, said] of [
    [size / 1e3, kb],
    [unpackedSize / 1e6, mb],
  ])
    assert.ok(Math.abs(is - said) <= said / 20, `README.md says ${told[0]}; ${is.toFixed(2)}`);
  return told[0];
}

/** Fails unless every path that `exports`, `main`, `module`, `types` and `typesVersions` name is in the tarball. */
export function holdsEveryTarget(manifest, files) {
  const { main, module, types, exports, typesVersions } = manifest;
  const targets = [...new Set(leavesOf({ main, module, types, exports, typesVersions }))];
  const missing = targets.filter((target) => !files.includes(normalize(target)));
  assert.deepEqual(missing, []);
  return `${targets.length} targets`;
}

/** Fails when the declarations that `entry` reaches name a package that a Nest application may lack. */
export function namesNoVendor(folder, entry) {
  const seen = new Set();
  const foreign = [];
  const queue = [join(folder, entry)];
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    for (const [, specifier] of readFileSync(file, 'utf8').matchAll(SPECIFIER)) {
      if (specifier.startsWith('.')) queue.push(join(dirname(file), specifier.replace(/\.js$/, '.d.ts')));
      else if (!ALLOWED_IN_DECLARATIONS.test(specifier))
        foreign.push(`${specifier} in ${file.slice(folder.length + 1)}`);
    }
  }
  assert.deepEqual(foreign, []);
  return `${seen.size} declarations`;
}

/** Fails unless `folder` holds the packed files, at their packed size: what is tested is what was packed. */
export function isInstalled(folder, packed) {
  const wrong = packed.filter(({ path, size }) => {
    const file = join(folder, path);
    return !existsSync(file) || readFileSync(file).length !== size;
  });
  assert.deepEqual(wrong, [], `${folder} is not what was packed`);
}

function leavesOf(value) {
  if (typeof value === 'string') return [value];
  return value === undefined ? [] : Object.values(value).flatMap(leavesOf);
}
