import { readFileSync } from 'node:fs';
import { dirname, isAbsolute, join, relative } from 'node:path';
import { workingDirectory } from './working-directory.js';

interface ApplicationPackage {
  readonly name: string;
  readonly version: string | null;
  readonly folder: string;
}

const IN_A_DEPENDENCY = /[/\\]node_modules[/\\]/;

/** Null where a dependency was started, as a test runner is. Under PM2 that is PM2's own file, and a variable has the application's. */
function startedFile(): string | null {
  const files = [process.argv[1], process.env['pm_exec_path']];
  return files.find((file) => file !== undefined && file !== '' && !IN_A_DEPENDENCY.test(file)) ?? null;
}

/** The started file's, or the working directory; the root where that has been deleted. */
export function applicationFolder(): string {
  const started = startedFile();
  return started === null ? (workingDirectory() ?? '/') : dirname(started);
}

/** The package that the started file is in, else the one that the working directory is in. */
const applicationPackage = (): ApplicationPackage | null =>
  packageAbove(applicationFolder()) ?? packageAbove(workingDirectory() ?? '/');

/** The package's name, with `-<folder>` below its `apps/` (a monorepo of Nest's CLI). A worker beside its web process has the same: both share one queue. */
export function applicationName(): string | null {
  const found = applicationPackage();
  if (found === null) return null;
  const started = startedFile();
  const folder = started === null ? null : folderInApps(relative(found.folder, started));
  return folder === null ? found.name : `${found.name}-${folder}`;
}

/** `api` of `dist/apps/api/main.js`; null where the file is below no folder of `apps`, or not in the package. */
function folderInApps(path: string): string | null {
  const folders = path.split(/[/\\]/).slice(0, -1);
  const at = folders.indexOf('apps');
  if (at === -1 || folders[0] === '..' || isAbsolute(path)) return null;
  return folders[at + 1] ?? null;
}

function packageAbove(folder: string): ApplicationPackage | null {
  for (let at = folder; ; at = dirname(at)) {
    try {
      const { name, version } = JSON.parse(readFileSync(join(at, 'package.json'), 'utf8')) as Record<string, unknown>;
      if (typeof name === 'string' && name !== '')
        return { name, version: typeof version === 'string' && version !== '' ? version : null, folder: at };
    } catch {
      // None here, or none that can be read: the next one up counts.
    }
    if (dirname(at) === at) return null;
  }
}

/** Variables in which platforms and build servers put the release; the first that is set counts. */
const VARIABLES = (
  'GIT_COMMIT SOURCE_VERSION COMMIT_SHA CI_COMMIT_SHA GITHUB_SHA RENDER_GIT_COMMIT ' +
  'RAILWAY_GIT_COMMIT_SHA VERCEL_GIT_COMMIT_SHA HEROKU_SLUG_COMMIT HEROKU_BUILD_COMMIT CODEBUILD_RESOLVED_SOURCE_VERSION ' +
  'SENTRY_RELEASE DD_VERSION K_REVISION GAE_VERSION'
).split(' ');

/** The release: the application's option, else its platform's variable, else its package's version, else null. */
export function findRelease(given: string | null, environment: NodeJS.ProcessEnv = process.env): string | null {
  if (given !== null) return given;
  const name = VARIABLES.find((variable) => (environment[variable] ?? '').trim() !== '');
  return name === undefined ? (applicationPackage()?.version ?? null) : environment[name]!.trim();
}
