// Imports the namespace: bundles often declare a `createRequire` of their own.
import * as nodeModule from 'node:module';
import { fileURLToPath } from 'node:url';
import { isRequired, isTypeScript, loadersOf, sourceOf } from './where.js';

/** Codes of `require()` for an ES module with top-level `await`, and for any ES module where Node is set to require none. */
const ONLY_IMPORTED = new Set(['ERR_REQUIRE_ASYNC_MODULE', 'ERR_REQUIRE_ESM']);

type ImportFile = (href: string) => Promise<unknown>;

/** Loads a file on the main thread. The CommonJS build has no `import()` that stays one: it is in `program`. */
export async function loadHere(href: string, program: URL | null): Promise<unknown> {
  const file = sourceOf(new URL(href));
  try {
    return required(file);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException | null)?.code ?? '';
    if (program === null || !ONLY_IMPORTED.has(code)) throw error;
    return (required(program) as { importFile: ImportFile }).importFile(file.href);
  }
}

/** Loads a file in a worker as the process loads its own: hooks that load TypeScript may be those of `import()` or of `require()`. */
export async function loadInWorker(href: string, importFile: ImportFile, loaders = loadersOf()): Promise<unknown> {
  const file = sourceOf(new URL(href));
  const imported = (): Promise<unknown> => importFile(file.href);
  if (!isTypeScript(file.pathname)) return imported();
  const byRequire = async (): Promise<unknown> => required(file);
  const [first, second] = isRequired(loaders) ? [byRequire, imported] : [imported, byRequire];
  return first().catch((error) => second().catch(() => Promise.reject(error)));
}

function required(file: URL): unknown {
  const path = fileURLToPath(file);
  return nodeModule.createRequire(path)(path);
}
