// Not by its name: bundles often declare a `createRequire` of their own.
import * as nodeModule from 'node:module';
import { fileURLToPath } from 'node:url';
import { isTypeScript, LOADER, loadersOf } from './where.js';

/** What `require()` says of an ES module with top-level `await`, and of all of them where Node is told to require none. */
const ONLY_IMPORTED = new Set(['ERR_REQUIRE_ASYNC_MODULE', 'ERR_REQUIRE_ESM']);

type ImportFile = (href: string) => Promise<unknown>;

/** Loads a file on the main thread. The CommonJS build has no `import()` that stays one: it is in `program`. */
export const loadHere = (href: string, program: URL | null): Promise<unknown> =>
  requireOrImport(href, program && ((file) => (required(program) as { importFile: ImportFile }).importFile(file)));

async function requireOrImport(href: string, importFile: ImportFile | null): Promise<unknown> {
  try {
    return required(new URL(href));
  } catch (error) {
    const code = (error as NodeJS.ErrnoException | null)?.code ?? '';
    if (importFile === null || !ONLY_IMPORTED.has(code)) throw error;
    return importFile(href);
  }
}

/** Loads a file in a worker as the process loads its own: `import()` knows no hooks of `require()`, and they may know TypeScript. */
export const loadInWorker = (href: string, importFile: ImportFile, loaders = loadersOf()): Promise<unknown> =>
  isTypeScript(href) && REQUIRED_LOADER.test(loaders) ? requireOrImport(href, importFile) : importFile(href);

const REQUIRED_LOADER = new RegExp(`(?:^|\\s)(?:-r|--require)[\\s=]\\S*${LOADER.source}`);

function required(file: URL): unknown {
  const path = fileURLToPath(file);
  return nodeModule.createRequire(path)(path);
}
