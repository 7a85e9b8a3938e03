// Not by its name: bundles often declare a `createRequire` of their own.
import * as nodeModule from 'node:module';
import { fileURLToPath } from 'node:url';
import { isTypeScript } from './where.js';

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

/** Loads a file in a worker as the process loads its own: where `import()` cannot read TypeScript, hooks of `require()` may. */
export async function importOrRequire(href: string, importFile: ImportFile): Promise<unknown> {
  try {
    return await importFile(href);
  } catch (error) {
    if (!isTypeScript(href) || !isOfItsText(error)) throw error;
    return required(new URL(href));
  }
}

/** Node's own `import()` strips types, or knows none, and has no decorators. */
const isOfItsText = (error: unknown): boolean =>
  error instanceof SyntaxError || (error as NodeJS.ErrnoException | null)?.code === 'ERR_UNKNOWN_FILE_EXTENSION';

function required(file: URL): unknown {
  const path = fileURLToPath(file);
  return nodeModule.createRequire(path)(path);
}
