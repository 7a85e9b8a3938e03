import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** What an application's package.json tells. */
export interface ApplicationPackage {
  readonly name: string;
  readonly version: string | null;
}

/** Where the started file is; a test runner's file is in a package of its own, so then the working directory. */
export function applicationFolder(): string {
  const [, started] = process.argv;
  return started === undefined || /[/\\]node_modules[/\\]/.test(started) ? process.cwd() : dirname(started);
}

/** Of the package that the started file is in, else of the one that the working directory is in. */
export const applicationPackage = (): ApplicationPackage | null =>
  packageAbove(applicationFolder()) ?? packageAbove(process.cwd());

function packageAbove(folder: string): ApplicationPackage | null {
  for (let at = folder; ; at = dirname(at)) {
    try {
      const { name, version } = JSON.parse(readFileSync(join(at, 'package.json'), 'utf8')) as Record<string, unknown>;
      if (typeof name === 'string' && name !== '')
        return { name, version: typeof version === 'string' && version !== '' ? version : null };
    } catch {
      // None here, or none that can be read: the next one up counts.
    }
    if (dirname(at) === at) return null;
  }
}

/** Where platforms and build servers put what is deployed; the first that is set counts. */
const VARIABLES = (
  'GIT_COMMIT SOURCE_VERSION COMMIT_SHA CI_COMMIT_SHA GITHUB_SHA RENDER_GIT_COMMIT ' +
  'RAILWAY_GIT_COMMIT_SHA VERCEL_GIT_COMMIT_SHA HEROKU_SLUG_COMMIT HEROKU_BUILD_COMMIT CODEBUILD_RESOLVED_SOURCE_VERSION ' +
  'SENTRY_RELEASE DD_VERSION K_REVISION GAE_VERSION'
).split(' ');

/** What is deployed: as the application says, else as its platform says, else its package's version. Null when nobody knows. */
export function releaseOf(given: string | null, environment: NodeJS.ProcessEnv = process.env): string | null {
  if (given !== null) return given;
  const name = VARIABLES.find((variable) => (environment[variable] ?? '').trim() !== '');
  return name === undefined ? (applicationPackage()?.version ?? null) : environment[name]!.trim();
}
