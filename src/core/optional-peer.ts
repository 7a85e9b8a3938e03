import { types } from 'node:util';
import { PerfError } from './perf.error.js';

/**
 * Loads a package that only some users need, when the application starts.
 * @param load a literal `import()`, so that bundlers see the package
 * @throws PERF_ERR_MISSING_PEER with the command that installs it, or with the reason why it cannot be loaded
 */
export async function optionalPeer<T>(name: string, neededBy: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const reason = explainFailure(error, name);
    if (reason === null) throw error;
    throw new PerfError('PERF_ERR_MISSING_PEER', `${neededBy} needs the package \`${name}\`, ${reason}`, {
      cause: error,
    });
  }
}

/** Loads a package where it is installed; null where it is not. */
export async function installedPeer<T>(name: string, load: () => Promise<T>): Promise<T | null> {
  try {
    return await load();
  } catch (error) {
    if (!isMissing(error, name)) throw error;
    return null;
  }
}

/** The rest of the message for a package that cannot be loaded; null for an error that its own code throws. */
function explainFailure(error: unknown, name: string): string | null {
  if (isMissing(error, name)) return `which is not installed. Run: npm install ${name}`;
  return isUnreadModule(error)
    ? 'whose installed version is an ES module, which Jest cannot load. Install a version that has CommonJS too, or name it in `transformIgnorePatterns`'
    : null;
}

/** Only the package itself: one that is installed but misses a dependency of its own throws its own error. */
function isMissing(error: unknown, name: string): boolean {
  // Jest runs tests in a realm of its own: its errors are no instances of this realm's `Error`.
  if (!types.isNativeError(error)) return false;
  // Vite (Vitest too) puts a module that throws this in the place of an optional peer that it cannot find.
  if (error.message.startsWith(`Could not resolve "${name}"`)) return true;
  const { code } = error as NodeJS.ErrnoException;
  const missing = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
  return missing && error.message.includes(`'${name}'`);
}

/** Jest reads a file with `import` or `export` as CommonJS. */
const isUnreadModule = (error: unknown): boolean =>
  types.isNativeError(error) &&
  error.name === 'SyntaxError' &&
  /^(Unexpected token 'export'|Cannot use import statement outside a module)/.test(error.message);
