// What the packed tarball may hold, and what the declarations of its entries may name.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const BESIDE_DIST = ['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'package.json'];
/** The text of the guides travels with the package, and the files that it tells to copy. */
const GUIDES = /^docs\/[\w-]+\.md$|^examples\/prometheus\/[\w-]+\.(json|yml)$/;
/** One file is CommonJS by its name: TypeScript compiles it so, for threads. */
const IN_DIST = /^dist\/(?:package\.json|[\w./-]+\.(?:js|d\.ts)|entries\/offload\/worker\.thread\.cjs)$/;
/** What an application of Nest has anyway; anything else in a declaration breaks users who lack that package. */
const ALLOWED_IN_DECLARATIONS = /^(node:|(@nestjs\/(common|core)|rxjs|reflect-metadata)(\/|$))/;
const SPECIFIER = /(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g;

/** Fails unless the tarball holds dist, the files that belong beside it, and the guides. */
export function holdsOnlyWhatShips(files) {
  const beside = files.filter((file) => !file.startsWith('dist/') && !GUIDES.test(file)).sort();
  assert.deepEqual(beside, BESIDE_DIST);
  const surprises = files.filter((file) => file.startsWith('dist/') && !IN_DIST.test(file));
  assert.deepEqual(surprises, []);
  return `${files.length} files`;
}

/** Bytes of the unpacked package at most. */
const MOST_UNPACKED = 1_600_000;

/** Fails unless README's sizes are those of npm within 5 %, of the download and unpacked, and nothing is installed with it. */
export function isAsLargeAsTold(readme, { size, unpackedSize }, dependencies) {
  const told = /(\d+) KB to download and ([\d.]+) MB unpacked(?: \(`[^`]+`\))?, without a dependency/.exec(readme);
  assert.notEqual(told, null, 'README.md does not say how large the package is');
  assert.deepEqual(dependencies, []);
  assert.ok(unpackedSize <= MOST_UNPACKED, `${unpackedSize} bytes unpacked`);
  const [kb, mb] = told.slice(1).map(Number);
  for (const [is, said] of [
    [size / 1e3, kb],
    [unpackedSize / 1e6, mb],
  ])
    assert.ok(Math.abs(is - said) <= said / 20, `README.md says ${told[0]}; ${is.toFixed(2)}`);
  return told[0];
}

/** Fails unless every file that `exports`, `main` and `bin` name is in the tarball, each entry with its declarations. */
export function holdsEveryTarget({ main, types, bin, exports }, files) {
  const entries = Object.values(exports).filter((path) => path.endsWith('.js'));
  const declared = entries.map((path) => path.replace(/\.js$/, '.d.ts'));
  const targets = [...new Set([main, types, ...Object.values(bin), ...Object.values(exports), ...declared])];
  assert.deepEqual(
    targets.filter((target) => !files.includes(normalize(target))),
    [],
  );
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

/** Fails unless a lock file is of this package.json: `npm install`, unlike `npm ci`, would resolve what is not locked. */
export function isOfLock({ dependencies, devDependencies }, { packages }) {
  const locked = packages[''];
  assert.deepEqual(
    { dependencies: locked.dependencies, devDependencies: locked.devDependencies },
    { dependencies, devDependencies },
  );
}
