import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** Makes a folder and its parents. Up to Node 26, `recursive` never returns where the kernel makes none, as in /proc. */
export function makeFolder(path: string, mode?: number): void {
  const isThere = (): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  if (isThere()) return;
  if (dirname(path) !== path) makeFolder(dirname(path), mode);
  try {
    mkdirSync(path, mode);
  } catch (error) {
    // Another process may have made it just now.
    if (!isThere()) throw error;
  }
}
