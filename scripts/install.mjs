// Installs what a lock file says, once: again only when the lock file is newer than what is installed. And programs that tests need.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, existsSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const CI = ['ci', '--no-audit', '--no-fund', '--loglevel=error'];

/** `npm ci` in `folder` unless what is installed came from this very lock file. */
export function installLocked(folder) {
  if (isInstalled(folder)) return;
  const { status } = spawnSync('npm', CI, { cwd: folder, stdio: 'inherit' });
  ended(folder, status);
}

/** Installs in several folders at once: each waits for the network most of its time. */
export async function installAllLocked(folders) {
  const missing = folders.filter((folder) => !isInstalled(folder));
  const installs = missing.map(async (folder) => {
    const [status] = await once(spawn('npm', CI, { cwd: folder, stdio: 'inherit' }), 'close');
    ended(folder, status);
  });
  const failed = (await Promise.allSettled(installs)).find(({ status }) => status === 'rejected');
  if (failed) throw failed.reason;
}

const readLock = (folder) => readFileSync(join(folder, 'package-lock.json'), 'utf8');
const stampPath = (folder) => join(folder, 'node_modules', '.installed-lock.json');

function isInstalled(folder) {
  if (existsSync(stampPath(folder)) && readFileSync(stampPath(folder), 'utf8') === readLock(folder)) return true;
  console.log(`Installing what is locked in ${folder} ...`);
  return false;
}

function ended(folder, status) {
  if (status !== 0) throw new Error(`npm ci failed in ${folder}. Its own message is above.`);
  writeFileSync(stampPath(folder), readLock(folder));
}

/** The path of the first of these programs on PATH, else null. */
export function onPath(names) {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return folders.flatMap((folder) => names.map((name) => join(folder, name))).find(existsSync) ?? null;
}

/** The path of a program, installed with apt where this is root; throws `needed` and the command to run where none can be had. */
export function ensureProgram(names, aptPackage, needed) {
  const found = onPath(names);
  if (found !== null) return found;
  const command = `apt-get update && apt-get install -y --no-install-recommends ${aptPackage}`;
  if (process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')) {
    console.log(`There is no ${names[0]}: ${command}`);
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const { status } = spawnSync('sh', ['-c', command], { stdio: ['ignore', 'ignore', 'inherit'], env });
    const installed = onPath(names);
    if (status === 0 && installed !== null) return installed;
  }
  throw new Error(`${needed} as root:\n  ${command}\nor put ${names[0]} on PATH.`);
}

/** Runs a command and ends this process with its exit code when it fails. */
export function run(command, args, options = {}) {
  const result = spawnSync(command, args, { stdio: 'inherit', ...options });
  if (result.error) throw result.error;
  if (result.status !== 0) process.exit(result.status ?? 1);
}
