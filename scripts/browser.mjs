// A real browser for the suites of the dashboard's page: Chromium on PATH, else installed with apt as root, else a clear stop.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const INSTALL = 'apt-get update && apt-get install -y --no-install-recommends chromium';
const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** Path of the first Chromium on PATH, else null. */
export function findBrowser() {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    for (const name of NAMES) {
      const file = join(folder, name);
      if (folder !== '' && existsSync(file)) return file;
    }
  }
  return null;
}

/** The path of a Chromium; throws with the command to run where there is none, and none can be installed. */
export function ensureBrowser() {
  const found = findBrowser();
  if (found !== null) return found;
  if (process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')) {
    console.log(`Chromium is not installed: ${INSTALL}`);
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const { status } = spawnSync('sh', ['-c', INSTALL], { stdio: ['ignore', 'ignore', 'inherit'], env });
    const installed = findBrowser();
    if (status === 0 && installed !== null) return installed;
  }
  throw new Error(`These tests need Chromium. Install it as root:\n  ${INSTALL}\nor put chromium on PATH.`);
}
