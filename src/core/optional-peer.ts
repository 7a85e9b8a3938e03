import { PerfError } from './perf.error.js';

/**
 * Loads a package that only some users need, when the application starts.
 * @param load a literal `import()`, so that bundlers see the package
 * @throws PERF_ERR_MISSING_PEER with the command that installs it
 */
export async function optionalPeer<T>(name: string, neededBy: string, load: () => Promise<T>): Promise<T> {
  const loaded = await installedPeer(name, load);
  if (loaded !== null) return loaded;
  const message = `${neededBy} needs the package \`${name}\`, which is not installed. Run: npm install ${name}`;
  throw new PerfError('PERF_ERR_MISSING_PEER', message);
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

/** Only the package itself: one that is installed but misses a dependency of its own throws its own error. */
function isMissing(error: unknown, name: string): boolean {
  const { code, message } = error as Partial<NodeJS.ErrnoException>;
  // Vitest where it bundles this library.
  if (message?.startsWith(`Could not resolve "${name}"`)) return true;
  const isNotFound = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
  return isNotFound && message?.includes(`'${name}'`) === true;
}
