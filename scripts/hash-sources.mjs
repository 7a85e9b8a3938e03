// Hashes what a step reads: one that finds its last hash again has nothing to do.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The tests write the page's bundle beside the sources: see scripts/page.mjs. */
const WRITTEN = join('src', 'dashboard', 'page-assets.js');

/** One hash of all files of these folders, of these files, and of what is installed. */
export function hashSources(folders, files) {
  const hash = createHash('sha256');
  for (const file of [...folders.flatMap(listFiles), ...files, 'node_modules/.package-lock.json'])
    if (!file.startsWith(WRITTEN)) hash.update(`${file}\0`).update(readFileSync(file));
  return hash.digest('hex');
}

function listFiles(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
}
