import { existsSync } from 'node:fs';
// Imports the namespace: bundles often declare a `createRequire` of their own.
import * as nodeModule from 'node:module';
import { fileURLToPath } from 'node:url';

/** Loads a file on the main thread. The build has no `import()` that stays one. */
export const loadHere = async (href: string): Promise<unknown> => requireFile(findSource(new URL(href)));

/** Loads a file in a worker. Hooks that load TypeScript may be those of `import()`, or of `require()`. */
export async function loadInWorker(href: string, importFile: (href: string) => Promise<unknown>): Promise<unknown> {
  const file = findSource(new URL(href));
  try {
    return await importFile(file.href);
  } catch (error) {
    if (!isTypeScript(file)) throw error;
    try {
      return requireFile(file);
    } catch {
      throw error;
    }
  }
}

/** Returns `offload.module.ts` for `offload.module.js` where sources run. */
export function findSource(file: URL): URL {
  if (existsSync(file)) return file;
  const sources = ['.ts', '.mts', '.cts'].map((extension) => new URL(file.href.replace(/\.\w+$/, extension)));
  return sources.find((source) => existsSync(source)) ?? file;
}

export const isTypeScript = ({ pathname }: URL): boolean => /\.[cm]?tsx?$/.test(pathname);

function requireFile(file: URL): unknown {
  const path = fileURLToPath(file);
  return nodeModule.createRequire(path)(path);
}
